package consumer

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"github.com/runnel-stream/runnel/lease"
)

// card is this worker's card, and the row that has it.
type card struct {
	lease.Card
	on      lease.Lease
	written time.Time
}

// introduce announces a worker that holds no lease, before it looks once more and asks. So of two
// workers that come at the same time, at least one knows of both. It returns false if that is not
// possible.
func (f *fleet) introduce(ctx context.Context, leases []lease.Lease) bool {
	if len(f.run.held) > 0 {
		return false
	}
	return f.announce(ctx, leases, false)
}

// announce writes this worker's card into a row.
func (f *fleet) announce(ctx context.Context, leases []lease.Lease, leaving bool) bool {
	c := &card{Card: lease.Card{
		Beat: 1, MaxLeases: f.run.cfg.MaxLeases, Leaving: leaving, Static: f.run.static,
	}}
	if old := f.card; old != nil {
		c.on, c.Beat = old.on, old.Beat+1
	} else {
		var ok bool
		if c.on, ok = f.board(leases); !ok {
			return false
		}
	}
	before, err := f.run.table.Announce(ctx, c.on, f.run.cfg.WorkerID, c.Card)
	if replaced := f.overtaken(before.Static); err == nil && replaced != nil {
		f.run.giveUp(replaced)
		return false
	}
	if err != nil {
		if !errors.Is(err, lease.ErrLeaseNotFound) && ctx.Err() == nil {
			f.run.failed(c.on.Key, err)
		}
		return false
	}
	c.written = time.Now()
	f.card = c
	return true
}

// board returns the row on which this worker announces itself: an unended one, since an ended one
// may be deleted soon. Each worker chooses its own by a hash, as the size of a row is the price of
// each write to it.
func (f *fleet) board(leases []lease.Lease) (lease.Lease, bool) {
	open := slices.DeleteFunc(slices.Clone(leases), lease.Lease.Ended)
	if len(open) == 0 {
		return lease.Lease{}, false
	}
	rank := func(l lease.Lease) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(f.run.cfg.WorkerID + "\x00" + string(l.Key)))
		return h.Sum64()
	}
	first := slices.MinFunc(open, func(a, b lease.Lease) int {
		return cmp.Compare(rank(a), rank(b))
	})
	return first, true
}

// upkeep raises the card of a worker without leases, and removes that of a worker with leases.
func (f *fleet) upkeep(ctx context.Context) {
	c := f.card
	switch {
	case c == nil:
		if len(f.run.held) == 0 && f.looks > 1 {
			f.announce(ctx, f.watch.Leases(), false)
		}
	case len(f.run.held) > 0:
		f.retract(ctx)
	case time.Since(c.written) >= f.run.cfg.Failover*7/16:
		if !f.announce(ctx, nil, false) {
			f.card = nil // the row is gone: another one serves
		}
	}
}

func (f *fleet) retract(ctx context.Context) {
	c := f.card
	if c == nil {
		return
	}
	f.card = nil
	err := f.run.table.Retract(ctx, c.on, f.run.cfg.WorkerID, c.Card)
	if err != nil && !errors.Is(err, lease.ErrLeaseNotFound) && ctx.Err() == nil {
		f.run.failed(c.on.Key, err) // a watcher removes it
	}
}

// sweepCards removes the cards of workers that died. Watchers do that.
func (f *fleet) sweepCards(ctx context.Context, now time.Time) {
	if !f.watching {
		return
	}
	for _, c := range f.watch.DeadCards(now, 2*f.run.cfg.Failover) {
		err := f.run.table.Retract(ctx, c.On, c.Worker, c.Card)
		if err != nil && !errors.Is(err, lease.ErrLeaseNotFound) && ctx.Err() == nil {
			f.run.failed(c.On.Key, err)
		}
	}
}

// sweepCompleted deletes the leases that no worker needs any more, beside Java workers: these count
// them. The first watcher does that. A lease that has changed since is left for the next look.
func (f *fleet) sweepCompleted(ctx context.Context, view lease.View, leases []lease.Lease) {
	watchers := view.Watchers(nil)
	if !f.withJava || len(watchers) == 0 || watchers[0] != f.run.cfg.WorkerID {
		return
	}
	for _, l := range lease.Completed(leases) {
		f.run.states.remove(ctx, l)
		err := f.run.table.Delete(ctx, l)
		if err != nil && !errors.Is(err, lease.ErrLeaseLost) && ctx.Err() == nil {
			f.run.failed(l.Key, err)
		}
	}
}
