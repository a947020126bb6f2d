package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// timedTx limits the sink's own statements in a transaction: a connection may be cut off without an
// end. The handler's statements have no limit.
type timedTx struct {
	Tx
	patience time.Duration
	cancel   func() // ends the transaction's context, and so its connection
}

// patience is the time that the sink's own statements may take. Move may wait for the failover time
// until the database ends the transaction of a frozen client.
func (s *Sink) patience() time.Duration { return 3 * s.cfg.Failover }

// begin begins a transaction. cancel ends ctx.
func (s *Sink) begin(ctx context.Context, cancel func()) (*timedTx, error) {
	t := &timedTx{patience: s.patience(), cancel: cancel}
	return t, t.within(ctx, func() (err error) {
		t.Tx, err = s.cfg.Client.Begin(ctx, s.cfg.Isolation)
		return err
	})
}

// Exec implements Tx.
func (t *timedTx) Exec(ctx context.Context, text string, args ...any) (n int64, err error) {
	err = t.within(ctx, func() (err error) {
		n, err = t.Tx.Exec(ctx, text, args...)
		return err
	})
	return n, err
}

// Commit implements Tx.
func (t *timedTx) Commit(ctx context.Context) error {
	return t.within(ctx, func() error { return t.Tx.Commit(ctx) })
}

// rollback ends the transaction without an effect.
func (t *timedTx) rollback(ctx context.Context) {
	_ = t.within(ctx, func() error {
		t.Rollback(ctx)
		return nil
	})
}

// within runs a call, and cancels the transaction's context if it takes longer than a database
// takes that is reached.
func (t *timedTx) within(ctx context.Context, do func() error) error {
	timed, stop := context.WithTimeout(ctx, t.patience)
	defer stop()
	over := context.AfterFunc(timed, t.cancel)
	defer over()
	err := do()
	if err != nil && errors.Is(timed.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w: no answer in %s: %w", context.DeadlineExceeded, t.patience, err)
	}
	return err
}
