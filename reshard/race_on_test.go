//go:build race

package reshard_test

// rapidChecks of each property: they are of pure code, and show the race detector nothing.
const rapidChecks = 10
