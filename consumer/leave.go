package consumer

import (
	"context"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// successors are the workers that take over from this one when it stops. They are planned while the
// shards' readers finish their work.
type successors struct {
	planned chan struct{} // closed when workers is set
	workers map[runnel.ShardID]string
}

// of returns the worker that takes the shard over; "" if there is none.
func (s *successors) of(ctx context.Context, shard runnel.ShardID) string {
	select {
	case <-s.planned:
		return s.workers[shard]
	case <-ctx.Done(): // the time to stop is over
		return ""
	}
}

func (s *successors) set(workers map[runnel.ShardID]string) {
	s.workers = workers
	close(s.planned)
}

// handBack plans who takes the leases over, and waits until every one of them has been handed over.
func (r *run) handBack(life context.Context) {
	var workers map[runnel.ShardID]string
	if len(r.held) > 0 && life.Err() == nil && !r.cfg.Static {
		workers = r.fleet.succeed(life)
	}
	r.successors.set(workers)
	for len(r.held) > 0 {
		r.collect(life, <-r.ended)
	}
	if life.Err() == nil {
		r.fleet.passOn(life)
		r.fleet.retract(life)
	}
}

// succeed says in the table that this worker leaves, looks at the table, and returns which worker
// should have each of its leases. It says so before it looks, so that of two workers that leave at
// the same time at least one knows of both. The table says which workers live: a watcher takes the
// leases of the others.
func (f *fleet) succeed(life context.Context) map[runnel.ShardID]string {
	ctx, cancel := context.WithTimeout(life, f.run.cfg.Failover/4)
	defer cancel()
	f.announce(ctx, f.watch.Leases(), true)
	leases, _, err := f.run.table.List(ctx)
	if err != nil {
		if life.Err() == nil {
			f.run.failed("", err) // the leases are released
		}
		return nil
	}
	now := time.Now()
	f.watch.Update(now, leases)
	view := f.watch.View(now, f.run.cfg.Failover)
	view.Members = slices.DeleteFunc(view.Members, func(m lease.Member) bool {
		return !f.watch.Alive(m.Name)
	})
	view.Members = f.withMe(view.Members, true)
	plan := view.Plan()
	workers := map[runnel.ShardID]string{}
	for _, m := range plan.Moves {
		if m.From != f.run.cfg.WorkerID || m.Kind != lease.MovePass {
			continue
		}
		to := m.To
		if !f.reaches(to, plan.Watchers) && len(plan.Watchers) > 0 {
			to = plan.Watchers[len(workers)%len(plan.Watchers)]
		}
		if f.reaches(to, plan.Watchers) {
			workers[m.Key] = to
		}
	}
	return workers
}

// passOn gives away the leases that this worker was given while it was leaving.
func (f *fleet) passOn(life context.Context) {
	if !f.index {
		return // a watcher takes them when they expire
	}
	ctx, cancel := context.WithTimeout(life, f.run.cfg.Failover/4)
	defer cancel()
	given, err := f.run.table.Owned(ctx, f.run.cfg.WorkerID)
	if err != nil {
		return // they expire
	}
	for _, key := range slices.Compact(given) {
		l, err := f.run.table.Get(ctx, key)
		if err == nil && l.Owner == f.run.cfg.WorkerID && l.Passed() {
			f.run.release(ctx, l)
		}
	}
}
