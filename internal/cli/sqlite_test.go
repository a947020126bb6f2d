package cli

import (
	"path/filepath"
	"sync"
	"testing"
)

// Workers that start at once all open a new database: the change of its journal mode does not wait
// for the other openers by itself.
func TestSQLiteOpensAtOnce(t *testing.T) {
	const rounds, openers = 200, 4
	for range rounds {
		db := "sqlite:" + filepath.Join(t.TempDir(), "new.db")
		var all sync.WaitGroup
		start := make(chan struct{})
		for range openers {
			all.Go(func() {
				<-start
				opened, err := openSQLite(t.Context(), db, "the test", true)
				if err == nil {
					err = opened.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		all.Wait()
	}
}
