//go:build !race

package reshard_test

const rapidChecks = 100
