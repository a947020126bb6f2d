package sqlsink

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/sqldb"
	"github.com/runnel-stream/runnel/sink"
)

// pauses are those between two attempts at a batch, and blamedPauses those after a failure of its
// handler: what the handler needs may be away for a second, and then no record is to blame.
var (
	pauses       = retry.Backoff{Min: 20 * time.Millisecond, Max: 10 * time.Second}
	blamedPauses = retry.Backoff{Min: 100 * time.Millisecond, Max: 10 * time.Second}
)

// poisonTries is the number of attempts that the handler fails before a batch is divided.
const poisonTries = 5

// logEvery is the time between two log lines about a shard that fails again and again.
const logEvery = 10 * time.Second

// attempt is a commit that is tried until it succeeds. Its row and token are new with each try.
type attempt struct {
	of       *writer
	records  []runnel.Record
	end      runnel.Position
	row      row      // after the commit
	state    []byte   // whole, if it is to be written; nil to leave the row's
	onCommit []func() // of the batches that the handler has taken
	dead     []Dead   // records that the try has moved to runnel_dead
	blamed   int      // tries that failed in the handler
	failed   string   // the token of the last try, if the handler has failed in it
}

// commit commits the records and everything that was written before, up to end. It returns
// *sink.MovedError if another writer has moved the row.
func (w *writer) commit(
	ctx context.Context, doing string, end runnel.Position, records []runnel.Record,
) (sink.Committed, error) {
	a := &attempt{of: w, records: records, end: end}
	err := a.repeat(ctx)
	if moved := new(sink.MovedError); errors.As(err, &moved) {
		return sink.Committed{}, err
	}
	if err != nil {
		return sink.Committed{}, w.fail(doing, err)
	}
	w.row, w.looked = a.row, time.Now()
	w.known = sink.Committed{End: end}
	w.clear()
	for _, call := range a.onCommit {
		call()
	}
	for _, d := range a.dead {
		w.sink.cfg.OnDead(d)
	}
	return w.known, nil
}

// repeat tries until the commit is done, the row has moved, or the shard is to be handed over.
func (a *attempt) repeat(ctx context.Context) error {
	var since time.Time
	for failures := 1; ; failures++ {
		err := a.try(ctx)
		var final *finalError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &final):
			return final.error
		case ctx.Err() != nil:
			return errors.Join(context.Cause(ctx), err)
		}
		if since.IsZero() {
			since = time.Now()
		}
		var blamed *blamedError
		isBlamed := errors.As(err, &blamed)
		if isBlamed {
			a.blamed++
		}
		pause := pauses.After(failures)
		if isBlamed {
			pause = blamedPauses.After(a.blamed)
		}
		a.of.report(Retry{
			ShardID: a.of.place.shard, Records: len(a.records), Err: err, Blamed: isBlamed,
			Since: since, Pause: pause,
		})
		if !retry.WaitOr(ctx, pause, sink.Stopping(ctx)) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// report reports an attempt that has failed.
func (w *writer) report(r Retry) {
	cfg := &w.sink.cfg
	if time.Since(w.logged) >= logEvery {
		w.logged = time.Now()
		cfg.Logger.Warn("a call has failed and is tried again", "app", cfg.App, "stream", w.stream,
			"shard", string(r.ShardID), "records", r.Records, "for",
			time.Since(r.Since).Round(time.Second), "error", r.Err)
	}
	cfg.OnRetry(r)
}

// finalError is an error after which the commit is not tried again.
type finalError struct{ error }

// blamedError is an error of the handler that blames its records.
type blamedError struct{ error }

func (e *blamedError) Unwrap() error { return e.error }

// try tries the commit once. A zombie waits on the row, and finds it moved before it has done any
// work.
func (a *attempt) try(outer context.Context) error {
	if err := a.prepare(); err != nil {
		return &finalError{err}
	}
	ctx, cancel := context.WithCancel(outer) // of the whole transaction, with database/sql
	defer cancel()
	tx, moved, err := a.begin(ctx, cancel)
	if err != nil {
		if sqldb.State(err) == sqldb.LockNotAvailable && a.of.sink.cfg.Dialect.Free != "" {
			a.free(outer)
		}
		return err
	}
	if !moved {
		tx.rollback(ctx)
		return a.taken(outer)
	}
	if err := a.handle(ctx, tx); err != nil {
		tx.rollback(ctx)
		a.failed = a.row.token
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return a.settle(outer, err)
	}
	return nil
}

// begin begins a transaction and moves the row in it. moved is false if the row was not as this
// writer knows it.
func (a *attempt) begin(ctx context.Context, cancel func()) (tx *timedTx, moved bool, err error) {
	if tx, err = a.of.sink.begin(ctx, cancel); err != nil {
		return nil, false, fmt.Errorf("begin: %w", err)
	}
	if moved, err = a.move(ctx, tx); err != nil {
		tx.rollback(ctx)
		return nil, false, fmt.Errorf("move the position: %w", err)
	}
	return tx, moved, nil
}

// prepare makes the row as it is to be. A large state that is to be written whole is made once.
func (a *attempt) prepare() (err error) {
	a.dead, a.onCommit = nil, nil
	a.row = row{there: true, position: a.end, token: rand.Text()[:16]}
	if a.row.gaps, err = a.of.gaps(); err != nil {
		return err
	}
	a.row.stored = a.of.row.stored
	if a.of.change != nil {
		change, _ := a.of.change.MarshalBinary() // it returns no error
		a.row.stored = a.row.stored.with(change)
	}
	switch {
	case !a.of.row.there || a.of.unknown || a.of.change != nil && a.of.row.stored.due():
		if a.state == nil {
			a.state = append([]byte{}, a.of.state.Bytes()...)
		}
		a.row.stored = stored{some: len(a.state) > 0, whole: len(a.state), changes: []byte{}}
	default:
		a.state = nil
	}
	return nil
}

// move moves the row, or inserts it.
func (a *attempt) move(ctx context.Context, tx *timedTx) (bool, error) {
	dialect := &a.of.sink.cfg.Dialect
	if dialect.Limits != "" {
		if _, err := tx.Exec(ctx, dialect.Limits, a.of.sink.failoverText()); err != nil {
			return false, err
		}
	}
	values := []any{a.end.SortText(), a.row.token, nil, nil, nil}
	if a.state != nil {
		values[2] = a.state
	}
	if a.state != nil || a.of.change != nil {
		values[3] = append([]byte{}, a.row.stored.changes...) // empty, not null
	}
	if a.of.gap != nil {
		values[4] = a.row.gaps
	}
	if a.of.row.there {
		n, err := tx.Exec(ctx, dialect.Move,
			a.of.place.args(append([]any{a.of.row.token}, values...)...)...)
		return n == 1, err
	}
	for _, id := range a.of.parents {
		parent := place{a.of.place.app, a.of.place.stream, id}
		n, err := tx.Exec(ctx, dialect.Ended, parent.args(runnel.End().SortText())...)
		if n != 1 || err != nil {
			return false, err
		}
	}
	n, err := tx.Exec(ctx, dialect.Insert, a.of.place.args(values...)...)
	return n == 1, err
}

func (s *Sink) failoverText() string { return fmt.Sprint(s.cfg.Failover.Milliseconds()) }

// free ends the transaction of a frozen client that has the row. Its error adds nothing to the one
// that is reported: the row is locked.
func (a *attempt) free(ctx context.Context) {
	_ = a.of.sink.query(ctx, a.of.sink.cfg.Dialect.Free, a.of.place.args(a.of.sink.failoverText()),
		func(func(...any) error) error { return nil })
}

// taken is called if the row is not as this writer knows it.
func (a *attempt) taken(ctx context.Context) error {
	found, err := a.of.sink.read(ctx, a.of.place)
	if err != nil {
		return fmt.Errorf("read the position of the other writer: %w", err)
	}
	if a.of.left(found) {
		if !found.there { // the end of a parent is gone
			return &finalError{errGone}
		}
		return errors.New("the position was not moved, and is as before") // a restore has come
	}
	if found.there && found.token == a.failed {
		return &finalError{errCommitted}
	}
	return &finalError{a.of.movedTo(found)}
}

// errCommitted means that records may be without an effect.
var errCommitted = errors.New("the handler has committed the transaction itself and has failed: " +
	"the position is behind the batch, and some of its effects may be missing; a handler must " +
	"not end its transaction")

// settle finds out whether a transaction whose COMMIT has returned an error is done. Only the row
// knows, unless the database has refused.
func (a *attempt) settle(ctx context.Context, failed error) error {
	failed = fmt.Errorf("commit: %w", failed)
	if ctx.Err() != nil {
		return failed // the next writer reads the row
	}
	if a.of.sink.cfg.Dialect.Moment(failed) {
		return failed
	}
	since := time.Now()
	for failures := 1; ; failures++ {
		token, err := a.of.sink.token(ctx, a.of.place)
		switch {
		case err == nil && token == a.row.token:
			return nil
		case err == nil && sqldb.Lost(failed):
			return failed // the next attempt waits if the transaction still commits
		case err == nil:
			return &blamedError{failed} // such as a constraint that was put off
		}
		pause := pauses.After(failures)
		a.of.report(Retry{
			ShardID: a.of.place.shard, Records: len(a.records),
			Err: fmt.Errorf("look at the outcome: %w: %w", failed, err), Since: since, Pause: pause,
		})
		if !retry.WaitOr(ctx, pause, sink.Stopping(ctx)) {
			return errors.Join(failed, err)
		}
	}
}

// handle calls the handler for the records, or for parts of them if it has failed too often.
func (a *attempt) handle(ctx context.Context, tx *timedTx) error {
	if len(a.records) == 0 {
		return nil
	}
	if a.of.sink.cfg.Poison == DeadLetter && a.blamed >= poisonTries {
		p := &poison{of: a, tx: tx, gap: a.of.gap}
		return p.part(ctx, a.records, 0)
	}
	err := a.call(ctx, tx, a.records, a.of.gap)
	if err != nil && !a.blames(ctx, tx, err) {
		return fmt.Errorf("the handler: %w", err)
	}
	if err != nil {
		return &blamedError{fmt.Errorf("the handler failed on %d records after %s: %w",
			len(a.records), a.of.row.position, err)}
	}
	return nil
}

// call calls the handler. A panic is an error: one record must not end the process.
func (a *attempt) call(
	ctx context.Context, tx *timedTx, records []runnel.Record, gap *sink.Gap,
) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	batch := &Batch{
		Stream: a.of.stream, ShardID: a.of.place.shard, Records: records, Gap: gap,
	}
	if err := tx.Handle(ctx, batch); err != nil {
		return err
	}
	if batch.OnCommit != nil {
		a.onCommit = append(a.onCommit, batch.OnCommit)
	}
	return nil
}

// blames reports whether an error of the handler is about its records. It is not if the context has
// ended, if the error is about the moment or of the network, or if the connection is lost, which a
// statement shows. The error itself does not: a handler may hide it, and the io.EOF of a decoder is
// about a record. A transaction that has failed still answers.
func (a *attempt) blames(ctx context.Context, tx *timedTx, err error) bool {
	var network *net.OpError
	if ctx.Err() != nil || sqldb.Ended(err) || errors.As(err, &network) ||
		a.of.sink.cfg.Dialect.Moment(err) {
		return false
	}
	_, probe := tx.Exec(ctx, "select 1")
	return probe == nil || sqldb.State(probe) == failedTransaction
}

// failedTransaction is the SQLSTATE of a statement in a transaction that has failed before.
const failedTransaction = "25P02"
