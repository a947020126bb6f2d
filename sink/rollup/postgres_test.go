package rollup_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/rollup"
)

// onPostgres starts a server for a test.
func onPostgres(t *testing.T) *database {
	t.Helper()
	t.Parallel()
	db, err := sql.Open("pgx", pgtest.New(t).URL)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return &database{rollup.Postgres, db}
}

func (d *database) exec(t *testing.T, text string) {
	t.Helper()
	_, err := d.db.ExecContext(t.Context(), text)
	must(t, err)
}

// TestClientEncoding refuses a session that converts texts: rows would have other ones.
func TestClientEncoding(t *testing.T) {
	d := onPostgres(t)
	d.exec(t, "alter role postgres set client_encoding = latin1")
	d.db.SetMaxIdleConns(0) // the setting is for new sessions
	r, err := rollup.New(d.config("edits", count()))
	must(t, err)
	err = r.Prepare(t.Context())
	unfit := new(rollup.UnfitError)
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "client_encoding LATIN1") {
		t.Errorf("got %v, want an UnfitError", err)
	}
}

// writeOne writes records of one shard as one batch, by a new writer.
func writeOne(t *testing.T, r *rollup.Rollup, records []runnel.Record) {
	t.Helper()
	w, err := r.Open(t.Context(), sink.Shard{
		Stream: "edits", Created: time.UnixMilli(1_700_000_000_000), ID: records[0].ShardID,
	})
	must(t, err)
	_, err = w.Write(t.Context(), sink.Batch{
		Records: records, Through: records[len(records)-1].Position,
	})
	must(t, err)
}

// counts are two definitions of a count: the database merges the one, the program the other.
var counts = map[string]rollup.Definition{
	"upsert": count(),
	"own": count(rollup.Column{
		Op: rollup.Own, Field: rollup.Field{Name: "seen", Type: rollup.Int},
		Of: func(*runnel.Record) (rollup.Value, error) { return rollup.Value{Int: 1}, nil },
		Merge: func(a, b rollup.Value) (rollup.Value, error) {
			return rollup.Value{Int: a.Int + b.Int}, nil
		},
	}),
}

// TestLocksInOrder shows that a batch locks its rows in the order of their keys, whatever the order
// of its records and of the table is. So of two shards with the same rows none waits for the other
// in a circle.
func TestLocksInOrder(t *testing.T) {
	d := onPostgres(t)
	// A plan that reads the table in its own order, if the statement allows it.
	d.exec(t, "alter system set enable_nestloop = off")
	d.exec(t, "alter system set enable_mergejoin = off")
	d.exec(t, "alter system set enable_indexscan = off")
	d.exec(t, "select pg_reload_conf()")
	keys := []string{"B", "a", "é"}
	for i := range 300 {
		keys = append(keys, fmt.Sprintf("key-%03d", i))
	}
	slices.Sort(keys)
	var some []string // few beside the table, so a plan may read the table and look them up
	for i := 0; i < len(keys); i += 10 {
		some = append(some, keys[i])
	}
	for name, of := range counts {
		t.Run(name, func(t *testing.T) {
			r := prepared(t, d.config(name, of))
			writeOne(t, r, shuffled(0, keys))
			order := d.table(t, "select k from "+name+" order by ctid")
			if !reflect.DeepEqual(order, keys) {
				t.Errorf("the rows were inserted as %.200q, want %.200q", order, keys)
			}
			d.reverse(t, name)
			middle := len(some) / 2
			free := d.whileLocked(t, name, some[middle], func() {
				writeOne(t, r, shuffled(1000, some))
			})
			free = slices.DeleteFunc(free, func(key string) bool {
				return !slices.Contains(some, key)
			})
			if want := some[middle+1:]; !reflect.DeepEqual(free, want) {
				t.Errorf("a batch that waits for %s has not locked %q, want %q", some[middle], free,
					want)
			}
		})
	}
}

// shuffled returns a record for each key, in another order, at positions behind after.
func shuffled(after int, keys []string) (records []runnel.Record) {
	rng := rand.New(rand.NewPCG(uint64(len(keys)), 1))
	for i, n := range rng.Perm(len(keys)) {
		records = append(records, recordsOf("shardId-000000000000",
			fmt.Sprintf(`{"k": %q}`, keys[n]))...)
		records[i].Position.Sequence = runnel.SequenceNumber(fmt.Sprint(1000 + after + i))
	}
	return records
}

// reverse writes a table's rows anew, in the reverse order of their keys.
func (d *database) reverse(t *testing.T, table string) {
	t.Helper()
	tx, err := d.db.BeginTx(t.Context(), nil)
	must(t, err)
	for _, text := range []string{
		"create temporary table old on commit drop as select * from " + table,
		"truncate " + table,
		"insert into " + table + ` select * from old order by k collate "C" desc`,
	} {
		_, err := tx.ExecContext(t.Context(), text)
		must(t, err)
	}
	must(t, tx.Commit())
	d.exec(t, "analyze "+table)
}

// whileLocked locks a row, calls write, which has to wait for it, and returns the rows that are not
// locked meanwhile, by key.
func (d *database) whileLocked(t *testing.T, table, key string, write func()) (free []string) {
	t.Helper()
	tx, err := d.db.BeginTx(t.Context(), nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.ExecContext(t.Context(), "select from "+table+" where k = $1 for update", key)
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		write()
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		waiting := d.table(t, "select pid from pg_stat_activity where wait_event_type = 'Lock'")
		if len(waiting) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the batch does not wait for the row")
		}
	}
	free = d.table(t, "select k from "+table+" for update skip locked")
	must(t, tx.Commit())
	<-done
	slices.SortFunc(free, strings.Compare)
	return free
}
