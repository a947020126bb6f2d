package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel/lease"
)

// coordinate takes leases and starts their readers. It returns nil if the worker is to stop or its
// work is done (Config.Once), and an error if the fleet cannot go on.
func (r *run) coordinate(life context.Context) error {
	cycle := time.NewTimer(0)
	defer cycle.Stop()
	audit := time.NewTicker(r.cfg.AuditInterval)
	defer audit.Stop()
	for {
		var err error
		select {
		case <-r.stopping:
			return nil
		case <-life.Done():
			return context.Cause(life)
		case h := <-r.ended:
			if r.collect(life, h) {
				cycle.Reset(0)
			}
		case err = <-r.final:
		case <-audit.C:
			err = r.audit(life)
		case <-cycle.C:
			var done bool
			if done, err = r.cycle(life); done {
				return nil
			}
			cycle.Reset(r.pause())
		}
		if err == nil || life.Err() != nil {
			continue
		}
		if over := r.isOver(life, err); over != nil {
			return over
		}
		if errors.Is(err, lease.ErrUnreadableRow) {
			return err
		}
		if !isFinal(err) {
			r.failed("", err)
		}
	}
}

// pause returns the time between two looks at the table.
func (r *run) pause() time.Duration {
	half := r.cfg.Failover / 2
	if r.once != nil && len(r.held) == 0 {
		half = min(half, 250*time.Millisecond) // only the work of other workers is left to wait for
	}
	return half - rand.N(half/8+1)
}

// cycle looks at the table once, and takes this worker's share. It returns true if the work of
// Config.Once is done.
func (r *run) cycle(ctx context.Context) (bool, error) {
	leases, skipped, err := r.table.List(ctx)
	if err != nil {
		return false, err
	}
	r.reportRows(skipped)
	now := time.Now()
	view := r.watch.Update(now, leases)
	for _, s := range view {
		// The row names another worker: the lease seems to be stolen. The keeper finds out at once.
		if h, ok := r.held[s.Key]; ok && s.Owner != r.cfg.WorkerID {
			h.keeper.renewSoon()
		}
	}
	if r.once != nil {
		if view, err = r.unsettled(ctx, now, view, skipped); err != nil || r.once.finished {
			return err == nil, err
		}
	}
	r.seed++
	decision := lease.Plan(now, view, r.cfg.WorkerID, lease.Limits{
		Failover: r.cfg.Failover, MaxLeases: r.cfg.MaxLeases, Seed: r.seed,
	})
	r.take(ctx, decision.Take, false)
	r.take(ctx, decision.Steal, true)
	return false, nil
}

const takesAtOnce = 8

// take takes leases, and starts to read the shards of those that it got.
func (r *run) take(ctx context.Context, wanted []lease.Sighting, steal bool) {
	got := make([]adoption, len(wanted))
	var group errgroup.Group
	group.SetLimit(takesAtOnce)
	for i, s := range wanted {
		if r.held[s.Key] != nil {
			continue // a holding that has not noticed its loss yet still reads the shard
		}
		group.Go(func() error {
			sent := time.Now()
			l, err := r.table.Take(ctx, s.Lease, r.cfg.WorkerID)
			switch {
			case err == nil:
				got[i] = adoption{lease: l, sent: sent}
			case !errors.Is(err, lease.ErrLeaseLost) && ctx.Err() == nil:
				r.failed(s.Key, err)
			}
			return nil
		})
	}
	_ = group.Wait()
	for i, a := range got {
		if a.sent.IsZero() {
			continue
		}
		e := Event{Kind: EventLeaseTaken, Other: wanted[i].Owner}
		switch {
		case steal:
			e.Kind = EventLeaseStolen
		case e.Other != "":
			e.Kind = EventLeaseExpired
		}
		r.start(ctx, a, e)
	}
}

// start begins to read the shard of a lease that the worker now holds.
func (r *run) start(life context.Context, a adoption, e Event) {
	h := r.newHolding(a.lease, a.sent)
	h.event(e)
	r.held[a.lease.Key] = h
	go func() {
		h.work(life)
		r.ended <- h
	}()
}

// collect records that a holding has ended, and reports whether the table should be looked at now.
func (r *run) collect(life context.Context, h *holding) bool {
	delete(r.held, h.first.Key)
	if h.ending == caughtUp {
		r.once.done[h.first.Key] = true
	}
	for _, a := range h.adopted {
		if r.isStopping() {
			r.release(life, a)
		} else {
			r.start(life, a, Event{Kind: EventLeaseTaken})
		}
	}
	return h.ending == finished || h.ending == caughtUp
}

// release gives back a lease that was created with this worker as its owner and was never read.
func (r *run) release(life context.Context, a adoption) {
	ctx, cancel := context.WithTimeout(life, r.cfg.Failover)
	defer cancel()
	if _, err := r.table.Release(ctx, a.lease); err != nil && life.Err() == nil {
		r.failed(a.lease.Key, err) // it expires by itself
	}
}

// handBack waits until every held lease has been handed over.
func (r *run) handBack(life context.Context) {
	for len(r.held) > 0 {
		r.collect(life, <-r.ended)
	}
}
