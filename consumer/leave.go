package consumer

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// successors are the workers that take over from this one when it stops. They are planned while the
// shards' readers finish their work.
type successors struct {
	planned chan struct{} // closed when workers is set
	once    sync.Once
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
	s.once.Do(func() {
		s.workers = workers
		close(s.planned)
	})
}

// handBack plans who takes the leases over, and waits until every one of them has been handed over.
func (r *run) handBack(life context.Context) {
	defer r.successors.set(nil)
	if len(r.held) > 0 && life.Err() == nil {
		r.successors.set(r.succeed(life))
	}
	for len(r.held) > 0 {
		r.collect(life, <-r.ended)
	}
	if life.Err() == nil {
		r.passOn(life)
		r.retract(life)
	}
}

// succeed says in the table that this worker leaves, looks at the table, and returns which worker
// should have each of its leases. It says so before it looks, so that of two workers that leave at
// the same time at least one knows of both. The table says which workers live: a watcher takes the
// leases of the others.
func (r *run) succeed(life context.Context) map[runnel.ShardID]string {
	ctx, cancel := context.WithTimeout(life, r.cfg.Failover/4)
	defer cancel()
	r.announce(ctx, r.fleet.watch.Leases(), true)
	leases, _, err := r.table.List(ctx)
	if err != nil {
		if life.Err() == nil {
			r.failed("", err) // the leases are released
		}
		return nil
	}
	now := time.Now()
	r.fleet.watch.Update(now, leases)
	view := r.fleet.watch.View(now, r.cfg.Failover)
	view.Members = r.withMe(view.Members, true)
	plan := view.Plan()
	workers := map[runnel.ShardID]string{}
	for _, m := range plan.Moves {
		if m.From != r.cfg.WorkerID || m.Kind != lease.MovePass {
			continue
		}
		to := m.To
		if !r.reaches(to, plan.Watchers) && len(plan.Watchers) > 0 {
			to = plan.Watchers[len(workers)%len(plan.Watchers)]
		}
		if r.reaches(to, plan.Watchers) {
			workers[m.Key] = to
		}
	}
	return workers
}

// passOn gives away the leases that this worker was given while it was leaving.
func (r *run) passOn(life context.Context) {
	if !r.fleet.index {
		return // a watcher takes them when they expire
	}
	ctx, cancel := context.WithTimeout(life, r.cfg.Failover/4)
	defer cancel()
	given, err := r.table.Owned(ctx, r.cfg.WorkerID)
	if err != nil {
		return // they expire
	}
	for _, key := range slices.Compact(given) {
		if l, err := r.table.Get(ctx, key); err == nil && l.Owner == r.cfg.WorkerID && l.Passed() {
			r.release(ctx, l)
		}
	}
}
