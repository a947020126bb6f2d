// Package exit gives each error of a command the exit status that the process ends with.
//
// An error without a status counts as wrong usage, because the errors of the command-line library
// are about the command line. Interrupted work and unwritten output have statuses of their own.
package exit
