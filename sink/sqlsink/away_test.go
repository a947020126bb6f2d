package sqlsink_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
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
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/runneltest"
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

	put        int          // records
	logs, read atomic.Int64 // lines, and records that were read

	mu    sync.Mutex
	tries map[runnel.ShardID]int // retries
}

const awayPut = 8 // records of a put

// countedReads counts what the workers read.
type countedReads struct {
	*kinesis.Client
	a *away
}

func (c countedReads) GetRecords(
	ctx context.Context, in *kinesis.GetRecordsInput, options ...func(*kinesis.Options),
) (*kinesis.GetRecordsOutput, error) {
	out, err := c.Client.GetRecords(ctx, in, options...)
	if err == nil {
		c.a.read.Add(int64(len(out.Records)))
	}
	return out, err
}

// Enabled, Handle, WithAttrs and WithGroup make a slog.Handler that counts lines.
func (a *away) Enabled(context.Context, slog.Level) bool { return true }

func (a *away) Handle(context.Context, slog.Record) error {
	a.logs.Add(1)
	return nil
}

func (a *away) WithAttrs([]slog.Attr) slog.Handler { return a }
func (a *away) WithGroup(string) slog.Handler      { return a }

func newAway(t *testing.T) *away {
	path := "file:" + filepath.Join(t.TempDir(), "test.db") +
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)"
	a := &away{
		T: t, outage: &outage{path: path}, tries: map[runnel.ShardID]int{},
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

// start runs a worker until the test ends.
func (a *away) start(id string) {
	a.Helper()
	logger := slog.New(a)
	to, err := a.d.sink("orders", sqlsink.Config{
		Logger: logger, OnRetry: func(r sqlsink.Retry) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.tries[r.ShardID]++
		},
	})
	must(a, err)
	w, err := consumer.New(consumer.Config{
		Stream: "orders", App: "orders", WorkerID: id, Sink: to, Logger: logger,
		Kinesis: countedReads{a.server.Kinesis(), a}, DynamoDB: a.server.DynamoDB(),
		PollInterval: 5 * time.Second, Failover: 30 * time.Second,
	})
	must(a, err)
	a.workers.Go(func() {
		if err := w.Run(a.Context()); err != nil && !errors.Is(err, context.Canceled) {
			a.Error(err)
		}
	})
}

// feed puts some records every 20 seconds, for a while.
func (a *away) feed(d time.Duration) {
	a.Helper()
	for start := time.Now(); time.Since(start) < d; <-time.After(20 * time.Second) {
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
	if read := a.read.Load(); read == 0 || read > 4*awayPut {
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
	if logs := a.logs.Load(); logs < least || logs > 2*least+10 {
		a.Errorf("%d lines, want %d to %d", logs, least, 2*least+10)
	}
}

// hour is the story of TestAwayForAnHour.
func (a *away) hour(inCommit int32) {
	a.start("w1")
	a.start("w2")
	a.feed(2 * time.Minute)
	a.wantEach()
	before, dials := a.owners(), a.outage.dials.Load()
	if len(before) != 2 {
		a.Fatalf("the leases are %v", before)
	}
	a.logs.Store(0)
	a.read.Store(0)
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
