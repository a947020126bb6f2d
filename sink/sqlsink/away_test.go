package sqlsink_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	modernc "modernc.org/sqlite"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/counttest"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// outage is a driver of SQLite whose database can be away: no connection is made then, and those
// that there are end with their next call.
type outage struct {
	path     string
	down     atomic.Bool
	dials    atomic.Int64
	inCommit atomic.Int32 // how the outage begins with the next COMMIT: 0 not, or one of the below
}

const (
	beforeCommit = 1 // the COMMIT does not arrive
	afterCommit  = 2 // its answer is lost
)

func (o *outage) Driver() driver.Driver { return &modernc.Driver{} }

func (o *outage) Connect(context.Context) (driver.Conn, error) {
	o.dials.Add(1)
	if o.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	conn, err := o.Driver().Open(o.path)
	return &outageConn{conn, o}, err
}

// lost returns the error of a connection that has ended.
func (o *outage) lost() error {
	if o.down.Load() {
		return driver.ErrBadConn
	}
	return nil
}

type outageConn struct {
	driver.Conn
	of *outage
}

func (c *outageConn) ExecContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (driver.Result, error) {
	if err := c.of.lost(); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
}

func (c *outageConn) QueryContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (driver.Rows, error) {
	if err := c.of.lost(); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
}

func (c *outageConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.of.lost(); err != nil {
		return nil, err
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return outageTx{tx, c.of}, err
}

type outageTx struct {
	driver.Tx
	of *outage
}

func (t outageTx) Commit() error {
	how := t.of.inCommit.Swap(0)
	if how == beforeCommit {
		t.of.down.Store(true)
	}
	if err := t.of.lost(); err != nil {
		return err
	}
	err := t.Tx.Commit()
	if how == afterCommit {
		t.of.down.Store(true)
		return driver.ErrBadConn
	}
	return err
}

// away is a fleet of two workers on a stream of two shards, in virtual time, with a database that
// can be away.
type away struct {
	*testing.T
	d       *database
	outage  *outage
	server  *runneltest.Server
	leases  *lease.Table
	workers sync.WaitGroup

	put             int              // records
	every, failover time.Duration    // between two puts; of a worker
	counts          counttest.Counts // of the workers

	mu      sync.Mutex
	tries   map[runnel.ShardID]int      // retries
	stopped map[runnel.ShardID]sink.Gap // by errors of gaps
	trimmed map[runnel.ShardID]int      // events of gaps
}

const awayPut = 8 // records of a put

func newAway(t *testing.T) *away {
	path := "file:" + filepath.Join(t.TempDir(), "test.db") +
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)"
	a := &away{
		T: t, outage: &outage{path: path}, tries: map[runnel.ShardID]int{}, every: 20 * time.Second,
		failover: 30 * time.Second,
		stopped:  map[runnel.ShardID]sink.Gap{}, trimmed: map[runnel.ShardID]int{},
		server: runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStreamDelay(-1),
			runneltest.WithStream("orders", 2)),
	}
	db := sql.OpenDB(a.outage)
	t.Cleanup(func() { _ = db.Close() })
	t.Cleanup(a.workers.Wait)
	a.d = (&database{Dialect: sqlsink.SQLite(), db: db}).made(t, sqliteEffects)
	stream, err := a.server.Kinesis().DescribeStreamSummary(t.Context(),
		&kinesis.DescribeStreamSummaryInput{StreamName: aws.String("orders")})
	must(t, err)
	a.leases, err = lease.New(lease.Config{
		DynamoDB: a.server.DynamoDB(), Table: "orders", Stream: lease.Stream{
			Name:    "orders",
			Created: *stream.StreamDescriptionSummary.StreamCreationTimestamp,
		},
	})
	must(t, err)
	return a
}

// start runs a worker until it is ended, or the test ends.
func (a *away) start(id string, allowGaps bool) (end func()) {
	a.Helper()
	logger := a.counts.Logger()
	to, err := a.d.sink("orders", sqlsink.Config{
		Logger: logger, AllowGaps: allowGaps, OnRetry: func(r sqlsink.Retry) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.tries[r.ShardID]++
		},
	})
	must(a, err)
	w, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders", WorkerID: id, Sink: to, Logger: logger,
		Kinesis: a.counts.Reader(a.server.Kinesis()), DynamoDB: a.server.DynamoDB(),
		PollInterval: 5 * time.Second, Failover: a.failover, OnEvent: a.observe,
	})
	must(a, err)
	ctx, end := context.WithCancel(a.Context())
	a.workers.Go(func() {
		if err := w.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			a.Error(err)
		}
	})
	return end
}

// observe collects what a worker reports of gaps.
func (a *away) observe(e consumer.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.Kind == consumer.EventTrimmed {
		a.trimmed[e.ShardID]++
	}
	if gap := new(sqlsink.GapError); errors.As(e.Err, &gap) {
		a.stopped[gap.ShardID] = gap.Gap
	}
}

// feed puts some records now and then, for a while.
func (a *away) feed(d time.Duration) {
	a.Helper()
	for start := time.Now(); time.Since(start) < d; <-time.After(a.every) {
		in := &kinesis.PutRecordsInput{StreamName: aws.String("orders")}
		for range awayPut {
			in.Records = append(in.Records, types.PutRecordsRequestEntry{
				PartitionKey: aws.String(fmt.Sprint("key-", a.put%7)),
				Data:         fmt.Appendf(nil, "%06d", a.put),
			})
			a.put++
		}
		_, err := a.server.Kinesis().PutRecords(a.Context(), in)
		must(a, err)
	}
}

// owners returns the owner of each shard, and how often it has changed.
func (a *away) owners() map[runnel.ShardID]string {
	a.Helper()
	leases, _, err := a.leases.List(a.Context())
	must(a, err)
	owners := map[runnel.ShardID]string{}
	for _, l := range leases {
		owners[l.Key] = fmt.Sprint(l.Owner, " ", l.Hold)
	}
	return owners
}

// wantEach checks that each record has taken effect once, and those of a key in order.
func (a *away) wantEach() {
	a.Helper()
	rows, err := a.d.db.QueryContext(a.Context(), "select key, data from effects order by n")
	must(a, err)
	defer rows.Close()
	last, n := map[string]string{}, 0
	for ; rows.Next(); n++ {
		var key, data string
		must(a, rows.Scan(&key, &data))
		if data <= last[key] {
			a.Fatalf("%s has %s after %s", key, data, last[key])
		}
		last[key] = data
	}
	must(a, rows.Err())
	if n != a.put {
		a.Errorf("%d effects of %d records", n, a.put)
	}
}

// TestAwayForAnHour has the database away for an hour while records flow on. The workers keep their
// leases and read no further; then each record takes effect once.
func TestAwayForAnHour(t *testing.T) {
	t.Parallel()
	for name, inCommit := range map[string]int32{
		"between commits": 0, "before a COMMIT arrives": beforeCommit, "after a COMMIT": afterCommit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				newAway(t).hour(inCommit)
			})
		})
	}
}

// wantPatience checks what the workers have done in an hour without a database.
func (a *away) wantPatience(dials int64) {
	a.Helper()
	// Each shard holds two reads. They have the records of one put or of the next.
	if read := a.counts.Records.Load(); read == 0 || read > 4*awayPut {
		a.Errorf("%d records were read, want up to %d", read, 4*awayPut)
	}
	// A pause is 5 to 10 s, after some shorter ones.
	const least, most = 3600 / 10, 3600/5 + 30
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, tries := range a.tries {
		if tries < least || tries > most {
			a.Errorf("%s has made %d tries, want %d to %d", id, tries, least, most)
		}
	}
	if len(a.tries) != 2 || dials > 2*2*most {
		a.Errorf("the tries are %v, with %d dials", a.tries, dials)
	}
	if logs := a.counts.Lines.Load(); logs < least || logs > 2*least+10 {
		a.Errorf("%d lines, want %d to %d", logs, least, 2*least+10)
	}
}

// hour is the story of TestAwayForAnHour.
func (a *away) hour(inCommit int32) {
	a.start("w1", false)
	a.start("w2", false)
	a.feed(2 * time.Minute)
	a.wantEach()
	before, dials := a.owners(), a.outage.dials.Load()
	if len(before) != 2 {
		a.Fatalf("the leases are %v", before)
	}
	a.counts.Reset()
	a.outage.inCommit.Store(inCommit)
	a.outage.down.Store(inCommit == 0)
	for range 60 {
		a.feed(time.Minute)
		if now := a.owners(); !maps.Equal(now, before) {
			a.Fatalf("the leases were %v, and are %v", before, now)
		}
	}
	a.wantPatience(a.outage.dials.Load() - dials)
	a.outage.down.Store(false)
	a.feed(5 * time.Minute)
	<-time.After(time.Minute)
	a.wantEach()
	if now := a.owners(); !maps.Equal(now, before) {
		a.Errorf("the leases were %v, and are %v", before, now)
	}
}

// TestAwayBeyondRetention has the database away for longer than the stream keeps records. The
// workers commit the records that they have in hand, and stop at the gap. AllowGaps passes it.
func TestAwayBeyondRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		newAway(t).days()
	})
}

// days is the story of TestAwayBeyondRetention. The stream keeps records for 24 hours.
func (a *away) days() {
	a.failover = 10 * time.Minute // the test takes less time
	ends := []func(){a.start("w1", false), a.start("w2", false)}
	a.feed(2 * time.Minute)
	a.wantEach()
	before, committed := a.owners(), a.effects()
	a.every = 30 * time.Minute
	a.counts.Reset()
	a.outage.down.Store(true)
	a.feed(26 * time.Hour)
	if now := a.owners(); !maps.Equal(now, before) {
		a.Errorf("the leases were %v, and are %v", before, now)
	}
	inHand := int(a.counts.Records.Load())
	if lines := a.counts.Lines.Load(); inHand == 0 || inHand > 4*awayPut || lines > 2*26*360+10 {
		a.Errorf("%d records were read, with %d lines", inHand, lines)
	}
	a.counts.Lines.Store(0)
	a.outage.down.Store(false)
	<-time.After(10 * time.Minute)
	a.wantStopped(committed + inHand)
	for _, end := range ends {
		end()
	}
	a.start("w3", true)
	<-time.After(30 * time.Minute)
	a.wantBehindGap()
}

// effects returns the number of effects.
func (a *away) effects() (n int) {
	a.Helper()
	must(a, a.d.db.QueryRowContext(a.Context(), "select count(*) from effects").Scan(&n))
	return n
}

// wantStopped checks that both shards have stopped at their gaps for ten minutes, with so many
// effects.
func (a *away) wantStopped(effects int) {
	a.Helper()
	if n := a.effects(); n != effects {
		a.Errorf("%d effects at the gap, want %d", n, effects)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.stopped) != 2 {
		a.Errorf("the shards %v have stopped at gaps, want both", a.stopped)
	}
	for id, times := range a.trimmed {
		if times != 1 {
			a.Errorf("the gap of %s was reported %d times", id, times)
		}
	}
	// A line about each failing shard comes every 10 s, after one about its gap.
	if lines := a.counts.Lines.Load(); lines > 2*60+10 {
		a.Errorf("%d lines in ten minutes at a gap", lines)
	}
}

// wantBehindGap checks that each key lacks the records of one stretch, which is in its shard's row,
// and that the others have taken effect once and in order.
func (a *away) wantBehindGap() {
	a.Helper()
	for key := range 7 {
		rows, err := a.d.db.QueryContext(a.Context(), "select cast(data as text) from effects "+
			"where key = $1 order by n", fmt.Sprint("key-", key))
		must(a, err)
		next, jumps := key, 0
		for rows.Next() {
			var text string
			must(a, rows.Scan(&text))
			number, err := strconv.Atoi(text)
			must(a, err)
			if number < next {
				a.Fatalf("record %d of key %d is there again", number, key)
			}
			if number > next {
				jumps++
			}
			next = number + 7
		}
		must(a, rows.Err())
		if next < a.put || jumps != 1 {
			a.Errorf("the records of key %d end at %d of %d, with %d gaps", key, next, a.put, jumps)
		}
	}
	var gaps int
	must(a, a.d.db.QueryRowContext(a.Context(), "select count(*) from runnel_position "+
		"where json_array_length(gap) = 1").Scan(&gaps))
	if gaps != 2 {
		a.Errorf("the rows of %d shards have a gap, want 2", gaps)
	}
}
