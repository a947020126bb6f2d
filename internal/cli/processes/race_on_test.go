//go:build race

package processes_test

// underRace: processes are several times slower, and one seed of each kill loop shows the
// detector all that there is; the plain run takes the others.
const underRace = true
