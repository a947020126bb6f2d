//go:build linux

package processes_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/runnel-stream/runnel/internal/cli/clitest"
	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/outbox"
)

const (
	relayH        = 3 * time.Second // H in the processes
	relayFailover = time.Second
	relayChaos    = 15 * time.Second
	relayKeys     = 100
	relayWriters  = 16
)

// TestRelayKills relays the rows of 16 writers, whose commits are delayed at random, while relays
// and the stream's server are killed with -9 and stopped, clocks step, answers are lost, and
// PostgreSQL is stopped at once. Each row has its key's number in the order of the commits. The
// archive must have every number of every key once and in order, and the tables must be empty.
func TestRelayKills(t *testing.T) {
	if underRace {
		t.Skip("the kill run is for the release build: it has races between processes alone")
	}
	t.Parallel() // beside TestTimeKills, which mostly waits
	for _, dialect := range []outbox.Dialect{outbox.DialectPostgres, outbox.DialectSQLite} {
		seeds := uint64(soak())
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s,seed=%d", dialect, seed+1), func(t *testing.T) {
				t.Parallel()
				run := newRelayRun(t, dialect, seed+1)
				run.misfortunes()
				run.finish()
			})
		}
	}
}

// relayRun is one run of TestRelayKills.
type relayRun struct {
	*killRun
	dialect  outbox.Dialect
	postgres *pgtest.Server
	url      string // --db of the relays
	db       *sql.DB
	kills    int

	server *process
	relays [2]*process
	wrote  atomic.Int64
}

func newRelayRun(t *testing.T, dialect outbox.Dialect, seed uint64) *relayRun {
	r := &relayRun{killRun: newKillRun(t, "", seed), dialect: dialect}
	r.env = []string{seam.EnvH + "=" + relayH.String()}
	dir := filepath.Dir(r.data)
	driver, name := "pgx", ""
	if dialect == outbox.DialectPostgres {
		r.postgres = pgtest.New(t, "synchronous_commit = off") // which the relay must not rely on
		r.url, name = r.postgres.URL, r.postgres.URL
	} else {
		r.url = "sqlite:" + filepath.Join(dir, "app.db")
		driver, name = "sqlite", "file:"+filepath.Join(dir, "app.db")+"?_pragma=journal_mode(wal)"+
			"&_pragma=synchronous(full)&_pragma=busy_timeout(20000)&_txlock=immediate"
	}
	r.start("relay", "--db", r.url, "--migrate").want(0)
	var err error
	if r.db, err = sql.Open(driver, name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.db.Close() })
	r.exec("create table counter (key text primary key, n int not null)")
	for key := range relayKeys {
		r.exec(fmt.Sprintf("insert into counter values ('key%d', 0)", key))
	}
	r.serveRelay()
	for i := range r.relays {
		r.startRelay(i)
	}
	return r
}

func (r *relayRun) exec(text string) {
	r.t.Helper()
	if _, err := r.db.ExecContext(r.t.Context(), text); err != nil {
		r.t.Fatal(err)
	}
}

func (r *relayRun) serveRelay() {
	r.server = r.serve(fmt.Sprintf(
		"seed=%d PutRecords:delay=10ms%%50 PutRecords:lose-answer%%5 PutRecords:fail-record%%3", r.seed))
}

func (r *relayRun) startRelay(i int) {
	r.relays[i] = r.start("relay", "--db", r.url, "--endpoint", r.endpoint, "--stream", "events",
		"--failover", relayFailover.String())
}

// write runs a writer until ctx ends.
func (r *relayRun) write(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		// An error leaves it open whether the row is there: the counter has the truth.
		if r.writeOne(ctx, random) == nil {
			r.wrote.Add(1)
		}
		time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond) // the writer's own work
	}
}

// writeOne commits the next number of a key, and its row. The counter's row is locked before the
// row's id is drawn.
func (r *relayRun) writeOne(ctx context.Context, random *rand.Rand) error {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	rows := 1 + random.IntN(3)
	for range rows {
		key := fmt.Sprint("key", random.IntN(relayKeys))
		if random.IntN(4) == 0 {
			key = "key0" // a hot one
		}
		if rows > 1 { // several in one transaction: in an order without deadlocks
			key = "key1"
		}
		var n int
		err = tx.QueryRowContext(ctx, "update counter set n = n + 1 where key = $1 returning n", key).
			Scan(&n)
		if err != nil {
			return err
		}
		if r.dialect == outbox.DialectPostgres {
			time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond) // the commit's delay
		}
		err = outbox.Table{}.Insert(ctx, outbox.SQL(tx, r.dialect), outbox.Row{
			Key: key, Data: fmt.Appendf(nil, `{"id": "%s-%d", "repo": "%s"}`, key, n, key),
		})
		if err != nil {
			return err
		}
	}
	if r.dialect == outbox.DialectPostgres {
		time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond) // the commit's delay
	}
	return tx.Commit()
}

// misfortunes lets writers write and everything else die, for a while.
func (r *relayRun) misfortunes() {
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	var writers sync.WaitGroup
	for w := range relayWriters {
		random := rand.New(rand.NewPCG(r.seed, uint64(w)+10))
		writers.Go(func() { r.write(ctx, random) })
	}
	for end := time.Now().Add(relayChaos); time.Now().Before(end); r.kills++ {
		time.Sleep(r.between(100*time.Millisecond, 800*time.Millisecond)) // the kill's moment
		r.misfortune()
	}
	cancel()
	writers.Wait()
}

func (r *relayRun) misfortune() {
	i := r.random.IntN(2)
	switch what := r.random.IntN(8); {
	case what < 3:
		r.relays[i].kill()
		r.step("relay")
		r.startRelay(i)
	case what == 3:
		r.relays[i].pause(r.between(relayFailover, 2*relayFailover))
	case what == 4:
		r.server.kill()
		time.Sleep(r.between(0, relayH+time.Second)) // sometimes longer than H
		r.serveRelay()
	case what == 5:
		r.server.pause(r.between(0, relayH+time.Second))
	case r.postgres != nil:
		r.postgres.Kill()
		time.Sleep(r.between(0, time.Second)) // the database's outage
		r.postgres.Start()
	default:
		for i := range r.relays {
			r.relays[i].kill()
		}
		for i := range r.relays {
			r.startRelay(i)
		}
	}
}

// finish waits until everything is relayed, and compares the archive with the counters.
func (r *relayRun) finish() {
	t := r.t
	left := func(table string) (n int) {
		if err := r.db.QueryRowContext(t.Context(), "select count(*) from "+table).Scan(&n); err != nil {
			return -1
		}
		return n
	}
	clitest.Eventually(t, "the tables are empty", func() bool {
		return left("outbox") == 0 && left("outbox_journal") == 0
	})
	for _, relay := range r.relays {
		relay.kill() // the next one waits for the end of its lease
	}
	r.start("relay", "--db", r.url, "--endpoint", r.endpoint, "--stream", "events", "--once").want(0)
	r.start("archive", "--endpoint", r.endpoint, "--stream", "events", "--to", r.archive,
		"--failover", killFailover, "--once").want(0)
	source, rows := r.source()
	var got verdict
	r.start("verify", r.archive, "--source", source, "--id", "id", "--key", "repo", "--output",
		"json").wantJSON(&got)
	r.server.stop()
	of := got.Source
	t.Logf("soak: 1 seeds, %d crashes", r.kills)
	t.Logf("%d misfortunes, %d rows; %d archived, %d in the stream twice", r.kills, rows, got.Records,
		of.Doubled.Count)
	if !got.OK || got.Records != int64(rows) || rows < 500 || r.kills < 5 ||
		of.Missing.Count+got.Twice.Count+of.OutOfOrder.Count+of.Doubled.Count+of.Unknown.Count > 0 {
		t.Errorf("%d missing, %d unknown, %d archived twice, %d doubled, %d out of order; want none",
			of.Missing.Count, of.Unknown.Count, got.Twice.Count, of.Doubled.Count, of.OutOfOrder.Count)
	}
	if n := left("outbox_held") + left("outbox_dead"); n > 0 {
		t.Errorf("%d keys are held or dead", n)
	}
}

// source writes the rows that the counters prove: those of each key in their order.
func (r *relayRun) source() (name string, rows int) {
	t := r.t
	name = filepath.Join(filepath.Dir(r.data), "source.ndjson")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewWriter(file)
	found, err := r.db.QueryContext(t.Context(), "select key, n from counter")
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var key string
		var n int
		if err := found.Scan(&key, &n); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			_, _ = fmt.Fprintf(lines, `{"id": "%s-%d", "repo": "%s"}`+"\n", key, i+1, key)
			rows++
		}
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	if err := lines.Flush(); err != nil {
		t.Fatal(err)
	}
	return name, rows
}
