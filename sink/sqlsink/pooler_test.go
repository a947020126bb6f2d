package sqlsink_test

import (
	"net/url"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// A PgBouncer in transaction mode is between the sink and PostgreSQL. pgx's modes without prepared
// statements work through it.
func TestPooler(t *testing.T) {
	eachPostgres(t, func(t *testing.T, d *database) {
		at, err := url.Parse(pgtest.Pooler(t, d.url))
		must(t, err)
		for _, mode := range []string{"exec", "simple_protocol", "cache_describe"} {
			t.Run(mode, func(t *testing.T) {
				t.Parallel()
				at := *at
				at.RawQuery = "default_query_exec_mode=" + mode
				r := newRig(t, d, 60)
				r.d = d.through(t, at.String())
				r.cfg.Poison = sqlsink.DeadLetter
				var group sync.WaitGroup
				for size := range 2 {
					s := r.sink(nil)
					must(t, s.Migrate(t.Context()))
					w := r.open(s)
					group.Go(func() {
						if err := r.pump(t.Context(), w, 2+size); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				r.wantEffects(r.records...)
				for _, retry := range r.retries.list() {
					t.Error(retry.Err)
				}
			})
		}
	})
}

// Workers that begin together make the tables together.
func TestMigrateTogether(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		r := newRig(t, d, 0)
		for range 10 {
			r.exec("drop table runnel_position")
			r.exec("drop table runnel_dead")
			s := r.sink(nil)
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					if err := s.Migrate(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
		}
	})
}
