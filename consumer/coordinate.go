package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel/lease"
)

// coordinate takes leases and starts their readers until the worker is to stop (nil), its work
// is done (Config.Once; nil), or the fleet cannot go on (an error).
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
		if errors.Is(err, lease.ErrRow) {
			return err
		}
		if !isFinal(err) {
			r.failed("", err)
		}
	}
}

// pause is the time between two looks at the table.
func (r *run) pause() time.Duration {
	half := r.cfg.Failover / 2
	if r.once != nil && len(r.held) == 0 {
		half = min(half, 250*time.Millisecond) // nothing left but to see that others are done
	}
	return half - rand.N(half/8+1)
}

// cycle looks at the table once, and takes what is this worker's. It returns true if Once is
// fulfilled.
func (r *run) cycle(ctx context.Context) (bool, error) {
	leases, skipped, err := r.table.List(ctx)
	if err != nil {
		return false, err
	}
	r.reportRows(skipped)
	now := time.Now()
	view := r.watch.Update(now, leases)
	for _, s := range view {
		// A row that names somebody else: robbed, it seems. The keeper finds out at once.
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

// take takes leases, and starts to read those that it got.
func (r *run) take(ctx context.Context, wanted []lease.Sighting, steal bool) {
	got := make([]adoption, len(wanted))
	var group errgroup.Group
	group.SetLimit(takesAtOnce)
	for i, s := range wanted {
		if r.held[s.Key] != nil {
			continue // still being read by a holding that has not noticed its loss yet
		}
		group.Go(func() error {
			sent := time.Now()
			l, err := r.table.Take(ctx, s.Lease, r.cfg.WorkerID)
			switch {
			case err == nil:
				got[i] = adoption{lease: l, sent: sent}
			case !errors.Is(err, lease.ErrLost) && ctx.Err() == nil:
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
		e := Event{Kind: LeaseTaken, Other: wanted[i].Owner}
		switch {
		case steal:
			e.Kind = LeaseStolen
		case e.Other != "":
			e.Kind = LeaseExpired
		}
		r.start(ctx, a, e)
	}
}

// start begins to read the shard of a lease that is now held.
func (r *run) start(life context.Context, a adoption, e Event) {
	h := r.newHolding(a.lease, a.sent)
	h.event(e)
	r.held[a.lease.Key] = h
	go func() {
		h.work(life)
		r.ended <- h
	}()
}

// collect takes note of a holding that has ended, and reports whether the table should be
// looked at now.
func (r *run) collect(life context.Context, h *holding) bool {
	delete(r.held, h.first.Key)
	if h.ending == caughtUp {
		r.once.done[h.first.Key] = true
	}
	for _, a := range h.adopted {
		if r.isStopping() {
			r.release(life, a)
		} else {
			r.start(life, a, Event{Kind: LeaseTaken})
		}
	}
	return h.ending == finished || h.ending == caughtUp
}

// release gives back a lease that was created held and never read.
func (r *run) release(life context.Context, a adoption) {
	ctx, cancel := context.WithTimeout(life, r.cfg.Failover)
	defer cancel()
	if _, err := r.table.Release(ctx, a.lease); err != nil && life.Err() == nil {
		r.failed(a.lease.Key, err) // it expires by itself
	}
}

// handBack waits until everything that is held has been handed over.
func (r *run) handBack(life context.Context) {
	for len(r.held) > 0 {
		r.collect(life, <-r.ended)
	}
}
