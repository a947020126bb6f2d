//go:build race

package deploy_test

// underRace is true under the race detector, which makes the fleets several times slower.
const underRace = true
