package consumer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/lease"
)

// states stores the filter states that are too large for lease rows, in a table of their own. Its
// errors never stop a shard: without a state the stream is read again. It is safe for concurrent
// use.
type states struct {
	table  *lease.States
	log    *slog.Logger
	report func(runnel.ShardID, error) // of failures that will be tried again

	mu    sync.Mutex
	made  bool      // the table is there
	told  bool      // that states are not stored
	pause time.Time // no attempt before
}

// refusedPause is the time until a table that refused this worker's role is tried again.
const refusedPause = 10 * time.Minute

func (r *run) newStates() *states {
	return &states{
		table: r.table.States(), report: r.reportFailure,
		log: r.cfg.Logger.With("worker", r.cfg.WorkerID, "table", r.table.States().Name()),
	}
}

// usable reports whether the table may be used now.
func (s *states) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !time.Now().Before(s.pause)
}

// put stores a state and makes the table before, if it is not there. It reports whether the state
// is stored.
func (s *states) put(
	ctx context.Context, held lease.Lease, at runnel.Position, state []byte,
) bool {
	if !s.usable() {
		return false
	}
	err := s.ensure(ctx)
	if err == nil {
		err = s.table.Put(ctx, held, at, state)
	}
	s.note(ctx, held.Key, err)
	return err == nil
}

func (s *states) ensure(ctx context.Context) error {
	s.mu.Lock()
	made := s.made
	s.mu.Unlock()
	if made {
		return nil
	}
	err := s.table.Ensure(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = err == nil
	return err
}

// of returns the state of a lease and its position, from the row or from the table; nil if there is
// none, or if it cannot be read.
func (s *states) of(ctx context.Context, l lease.Lease) ([]byte, runnel.Position) {
	if !l.StateApart() {
		return l.State, l.StateAt
	}
	if !s.usable() {
		return nil, runnel.Start()
	}
	state, at, err := s.table.Get(ctx, l.Key)
	s.note(ctx, l.Key, err)
	return state, at
}

// remove deletes the state of a lease that is about to be deleted.
func (s *states) remove(ctx context.Context, l lease.Lease) {
	if l.StateApart() && s.usable() {
		s.note(ctx, l.Key, s.table.Delete(ctx, l))
	}
}

// note reports an error: once if it will come again at every attempt.
func (s *states) note(ctx context.Context, shard runnel.ShardID, err error) {
	class := awserr.DynamoDB.Of(err)
	lasts := class == awserr.Caller || errors.Is(err, lease.ErrStateTooLarge)
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, lease.ErrLeaseLost):
		return // a worker that has lost its lease finds out from the lease table
	case !lasts:
		s.report(shard, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if class == awserr.Missing {
		s.made = false
	}
	if class == awserr.Caller {
		s.pause = time.Now().Add(refusedPause)
	}
	if !lasts || s.told {
		return
	}
	s.told = true
	s.log.Warn("the filter states above 1 KiB are not stored, so the next worker of a shard reads "+
		"up to 20 minutes of it again: allow CreateTable, DescribeTable, GetItem, PutItem and "+
		"DeleteItem on the table", "shard", string(shard), "error", err)
}
