package outbox_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/outbox"
)

// Relays and writers work through a pooler in transaction mode.
func TestPooler(t *testing.T) {
	b := newBox(t, outbox.DialectPostgres)
	through := pgtest.Pooler(t, b.url)
	b.db = outbox.Postgres(b.pool(through))
	b.must(outbox.Migrate(t.Context(), b.db, b.table))
	first, stop := b.start()
	second, _ := b.start()
	pool := b.pool(through)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range 100 {
				_, err := pool.Exec(t.Context(), "select "+b.table.Function()+"($1, $2)",
					pgx.QueryExecModeExec, fmt.Sprint("key", w), fmt.Sprint(n+1))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	b.until("some rows are sent", func() bool {
		return first.Stats().Sent+second.Stats().Sent > 20
	})
	b.must(stop())
	writers.Wait()
	b.until("all is sent", func() bool { return first.Stats().Sent+second.Stats().Sent == 400 })
	b.wantNumbered(4, 100)
	b.wantEmpty()
}
