package outbox

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite"

	"github.com/runnel-stream/runnel/internal/pgtest"
)

// eachStore runs a test on both kinds of store, with all tables.
func eachStore(t *testing.T, test func(t *testing.T, s store)) {
	t.Helper()
	t.Parallel()
	run := func(t *testing.T, db DB) {
		t.Helper()
		if err := Migrate(t.Context(), db, Table{}); err != nil {
			t.Fatal(err)
		}
		s, err := open(t.Context(), db, Table{}.withDefaults(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.close)
		test(t, s)
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		pool, err := pgxpool.New(t.Context(), pgtest.New(t).URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		run(t, Postgres(pool))
	})
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "app.db")+
			"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(10000)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		run(t, SQLite(db))
	})
}

// Only the owner of the lease changes the database, and only in its present epoch.
func TestFence(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		wish := claim{owner: "a", failover: 200 * time.Millisecond, stream: "orders", created: 5}
		take := func(c claim, taken bool) lease {
			t.Helper()
			l, err := s.claim(t.Context(), c)
			if err != nil || l.taken != taken {
				t.Fatalf("claim of %s: %+v, %v", c.owner, l, err)
			}
			return l
		}
		wantLost := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, errLost) {
				t.Errorf("%s: %v", what, err)
			}
		}
		first := take(wish, true).fence
		take(wish, true) // its answer was lost
		first.epoch++
		other := wish
		other.owner = "b"
		if got := take(other, false); got.owner != "a" {
			t.Errorf("the owner is %q", got.owner)
		}
		add := &change{opened: []openUnit{{unitID: unitID{number: 1}, key: "k", ids: []int64{1}}}}
		if err := s.commit(t.Context(), first, add); err != nil {
			t.Fatal(err)
		}
		renewed, err := s.renew(t.Context(), first)
		if err != nil || renewed.epoch <= first.epoch {
			t.Fatalf("%+v, %v", renewed, err)
		}
		wantLost("a commit in the old epoch", s.commit(t.Context(), first, add))
		if err := s.commit(t.Context(), renewed, &change{}); err != nil {
			t.Error(err)
		}
		time.Sleep(300 * time.Millisecond) // the lease ends
		second := take(other, true).fence
		wantLost("a commit of the old owner", s.commit(t.Context(), renewed, add))
		_, err = s.renew(t.Context(), renewed)
		wantLost("a renewal of the old owner", err)
		wantLost("a heartbeat of the old owner", s.beat(t.Context(), renewed, 1))
		wantLost("a goodbye of the old owner", s.leave(t.Context(), renewed))
		if units, err := s.open(t.Context()); err != nil || len(units) != 1 {
			t.Errorf("%d units, %v", len(units), err)
		}
		if err := s.leave(t.Context(), second); err != nil {
			t.Error(err)
		}
		other.stream = "another"
		if got := take(other, false); got.stream != "orders" || got.created != 5 {
			t.Errorf("%+v", got)
		}
		take(wish, true)
	})
}

// The rows of a key that is held twice are all in its row.
func TestHeldTwice(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		l, err := s.claim(t.Context(), claim{owner: "a", failover: time.Minute, stream: "s"})
		if err != nil {
			t.Fatal(err)
		}
		for id := range int64(3) {
			err := s.commit(t.Context(), l.fence, &change{
				held: []HeldKey{{Key: "k", Reason: "bad", IDs: []int64{id}}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		held, err := s.held(t.Context())
		if err != nil || len(held) != 1 || len(held[0].IDs) != 3 {
			t.Errorf("%v, %v", held, err)
		}
	})
}
