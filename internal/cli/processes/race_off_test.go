//go:build !race

package processes_test

const underRace = false
