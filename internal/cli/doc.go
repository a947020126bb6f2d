// Package cli is the runnel command: one file per subcommand.
//
// Main runs a command line. A command is a function that gets the console, adds its flags, and
// returns a cobra command. Errors carry their exit status (internal/exit); results are printed by
// internal/rows. The keys commands are in internal/keys and the demo in internal/demo.
package cli
