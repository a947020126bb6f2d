package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/lease"
)

// coordinate takes this worker's part in the fleet and starts the readers of its shards. It returns
// nil if the worker is to stop or its work is done (Config.Once), and an error if the fleet cannot
// go on.
func (r *run) coordinate(life context.Context) error {
	look, check := time.NewTimer(0), time.NewTimer(r.fleet.checkPause(false))
	defer look.Stop()
	defer check.Stop()
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
				look.Reset(r.soon())
			}
			if h.deleted {
				r.cfg.Logger.Warn("the row of a held lease was deleted: the stream's shards are "+
					"compared with the table now", "worker", r.cfg.WorkerID, "stream", r.cfg.Stream,
					"table", r.table.Name(), "shard", string(h.first.Key))
				err = r.audit(life)
			}
		case do := <-r.requests:
			do(life)
		case err = <-r.final:
		case <-audit.C:
			err = r.inspect(life)
		case <-check.C:
			var again bool
			if again, err = r.fleet.check(life); again {
				look.Reset(0)
			}
			check.Reset(r.fleet.checkPause(true))
		case <-look.C:
			var done bool
			if done, err = r.look(life); done {
				return nil
			}
			if pause, again := r.fleet.lookPause(); again {
				look.Reset(pause)
			}
			check.Reset(r.fleet.checkPause(false))
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

// inspect compares the stream with the table. The watchers do that for all. The others only look
// whether KCL 3.x has begun to assign the leases.
func (r *run) inspect(life context.Context) error {
	r.fleet.findIndex(life)
	if !r.fleet.watching {
		return r.table.RefuseKCL3(life)
	}
	return r.audit(life)
}

// jittered returns a duration up to an eighth shorter, so that workers do not call all at once.
func jittered(d time.Duration) time.Duration { return d - rand.N(d/8+1) }

// soon is the pause between an event that changes the worker's part and the look at the table.
// Events that come together share one look.
func (r *run) soon() time.Duration { return min(r.cfg.Failover/40, 250*time.Millisecond) }

const takesAtOnce = 8

// take takes leases, and starts to read the shards of those that it got. kind is the event of a
// lease that another worker held.
func (r *run) take(ctx context.Context, wanted []lease.Sighting, kind EventKind) {
	got := make([]adoption, len(wanted))
	var group errgroup.Group
	group.SetLimit(takesAtOnce)
	for i, s := range wanted {
		if r.held[s.Key] != nil {
			continue // a holding that has not noticed its loss yet still reads the shard
		}
		group.Go(func() error {
			got[i] = r.takeOne(ctx, s.Lease)
			return nil
		})
	}
	_ = group.Wait()
	for i, a := range got {
		if a.sent.IsZero() {
			continue
		}
		e := Event{Kind: kind, Other: wanted[i].Owner}
		if e.Other == "" {
			e.Kind = EventLeaseTaken
		}
		r.start(ctx, a, e)
	}
}

// claim is what this worker writes of itself into the rows that it takes.
func (r *run) claim() lease.Claim {
	return lease.Claim{
		Worker: r.cfg.WorkerID, MaxLeases: r.cfg.MaxLeases, Static: r.static,
		Origin: r.origin, Sink: r.cfg.Sink != nil, Output: r.output,
		Failover: r.cfg.Failover,
	}
}

// takeOne takes a lease; the adoption is zero if it did not get it.
func (r *run) takeOne(ctx context.Context, seen lease.Lease) adoption {
	sent := moment()
	l, err := r.table.Take(ctx, seen, r.claim())
	switch {
	case err == nil:
		return adoption{lease: l, sent: sent}
	case !errors.Is(err, lease.ErrLeaseLost) && ctx.Err() == nil:
		r.failed(seen.Key, err)
	}
	return adoption{}
}

// start begins to read the shard of a lease that the worker now holds.
func (r *run) start(life context.Context, a adoption, e Event) {
	h := r.newHolding(a.lease, a.sent)
	r.held[a.lease.Key] = h
	r.holdings.add(h) // before the event, whose receiver may pause the shard
	h.event(e)
	go func() {
		h.work(life)
		r.ended <- h
	}()
}

// collect records that a holding has ended, and reports whether the table should be looked at now.
func (r *run) collect(life context.Context, h *holding) bool {
	delete(r.held, h.first.Key)
	h.giveUp()
	r.holdings.remove(h.first.Key)
	if h.ending == caughtUp {
		r.once.done[h.first.Key] = true
	}
	for _, a := range h.adopted {
		switch {
		case r.held[a.lease.Key] != nil:
			// A static worker has found the child in the table, and resumed it.
		case r.isStopping():
			r.release(life, a.lease)
		default:
			r.start(life, a, Event{Kind: EventLeaseTaken})
		}
	}
	killed := errors.Is(context.Cause(life), seam.ErrKilled)
	return h.ending != stopped && !killed
}
