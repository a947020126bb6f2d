package consumer

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// card is this worker's card, and the row that has it.
type card struct {
	lease.Card
	on      lease.Lease
	written time.Time
}

// probe is one watcher, as a worker that does not watch sees it: the row by which it shows its life.
type probe struct {
	watcher string
	row     runnel.ShardID
	mark    int64     // the row's counter, or the beat of the watcher's card
	changed time.Time // when this worker first saw the mark
}

// checkPause returns the time until the next check. While leases are under way to this worker it is
// short, because their shards are silent.
func (r *run) checkPause() time.Duration {
	if r.fleet.concerned && !r.fleet.watching || len(r.asked()) > 0 {
		return r.soon()
	}
	return jittered(r.cfg.Failover / 8)
}

// asked returns the shards for which this worker has asked, as of the last look.
func (r *run) asked() []runnel.ShardID {
	var keys []runnel.ShardID
	for m := range r.fleet.since {
		if m.Kind == lease.MovePass && m.To == r.cfg.WorkerID && r.held[m.Key] == nil {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// check finds the leases that the worker was given, keeps its card alive, and looks after the
// watchers. It returns true if the whole table must be looked at.
func (r *run) check(ctx context.Context) (again bool, err error) {
	given := r.asked()
	if r.fleet.index {
		if given, err = r.table.Owned(ctx, r.cfg.WorkerID); err != nil {
			return false, err
		}
	}
	for _, key := range given {
		if r.held[key] != nil {
			continue
		}
		l, err := r.table.Get(ctx, key)
		switch {
		case err == nil && l.Owner == r.cfg.WorkerID && l.Passed():
			r.adopt(ctx, l)
		case err != nil && !errors.Is(err, lease.ErrLeaseNotFound):
			return false, err
		}
	}
	r.upkeep(ctx)
	if r.fleet.watching || r.fleet.looks < 2 {
		return false, nil
	}
	return r.probeWatcher(ctx)
}

// adopt takes a lease that was passed to this worker, or gives it back if there is no room for it.
func (r *run) adopt(ctx context.Context, l lease.Lease) {
	if r.room() == 0 {
		r.release(ctx, l)
		return
	}
	if a := r.takeOne(ctx, l); !a.sent.IsZero() {
		r.start(ctx, a, Event{Kind: EventLeaseReceived})
	}
}

// release gives back a lease that this worker was given and never read.
func (r *run) release(life context.Context, l lease.Lease) {
	ctx, cancel := context.WithTimeout(life, r.cfg.Failover)
	defer cancel()
	if _, err := r.table.Release(ctx, l, lease.Mark{}); err != nil && life.Err() == nil &&
		!errors.Is(err, lease.ErrLeaseLost) {
		r.failed(l.Key, err) // it expires by itself
	}
}

// findIndex finds out whether the table has the index by owner, and adds it if it may.
func (r *run) findIndex(ctx context.Context) {
	if r.fleet.index {
		return
	}
	ready, err := r.table.Index(ctx)
	if err != nil && !r.fleet.refused {
		r.fleet.refused = true
		r.cfg.Logger.Info("the lease table has no index by owner: workers that do not watch the "+
			"table learn only of leases for which they asked", "worker", r.cfg.WorkerID,
			"table", r.table.Name(), "error", err)
	}
	r.fleet.index = ready
}

// introduce announces a worker that holds no lease, before it looks once more and asks. So of two
// workers that come at the same time, at least one knows of both. It returns false if that is not
// possible.
func (r *run) introduce(ctx context.Context, leases []lease.Lease) bool {
	if len(r.held) > 0 {
		return false
	}
	return r.announce(ctx, leases, false)
}

// announce writes this worker's card into a row.
func (r *run) announce(ctx context.Context, leases []lease.Lease, leaving bool) bool {
	c := &card{Card: lease.Card{Beat: 1, MaxLeases: r.cfg.MaxLeases, Leaving: leaving}}
	if old := r.fleet.card; old != nil {
		c.on, c.Beat = old.on, old.Beat+1
	} else {
		var ok bool
		if c.on, ok = r.board(leases); !ok {
			return false
		}
	}
	if err := r.table.Announce(ctx, c.on, r.cfg.WorkerID, c.Card); err != nil {
		if !errors.Is(err, lease.ErrLeaseNotFound) && ctx.Err() == nil {
			r.failed(c.on.Key, err)
		}
		return false
	}
	c.written = time.Now()
	r.fleet.card = c
	return true
}

// board returns the row on which this worker announces itself: an unended one, since an ended one
// may be deleted soon. Each worker chooses its own by a hash, as the size of a row is the price of
// each write to it.
func (r *run) board(leases []lease.Lease) (lease.Lease, bool) {
	open := slices.DeleteFunc(slices.Clone(leases), lease.Lease.Ended)
	if len(open) == 0 {
		return lease.Lease{}, false
	}
	rank := func(l lease.Lease) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(r.cfg.WorkerID + "\x00" + string(l.Key)))
		return h.Sum64()
	}
	return slices.MinFunc(open, func(a, b lease.Lease) int { return cmp.Compare(rank(a), rank(b)) }), true
}

// upkeep raises the card of a worker without leases, and removes that of a worker with leases.
func (r *run) upkeep(ctx context.Context) {
	c := r.fleet.card
	switch {
	case c == nil:
		if len(r.held) == 0 && r.fleet.looks > 1 {
			r.announce(ctx, r.fleet.watch.Leases(), false)
		}
	case len(r.held) > 0:
		r.retract(ctx)
	case time.Since(c.written) >= r.cfg.Failover*7/16:
		if !r.announce(ctx, nil, false) {
			r.fleet.card = nil // the row is gone: another one serves
		}
	}
}

func (r *run) retract(ctx context.Context) {
	c := r.fleet.card
	if c == nil {
		return
	}
	r.fleet.card = nil
	err := r.table.Retract(ctx, c.on, r.cfg.WorkerID, c.Card)
	if err != nil && !errors.Is(err, lease.ErrLeaseNotFound) && ctx.Err() == nil {
		r.failed(c.on.Key, err) // a watcher removes it
	}
}

// sweepCards removes the cards of workers that died. Watchers do that.
func (r *run) sweepCards(ctx context.Context, now time.Time) {
	if !r.fleet.watching {
		return
	}
	for _, c := range r.fleet.watch.DeadCards(now, 2*r.cfg.Failover) {
		err := r.table.Retract(ctx, c.On, c.Worker, c.Card)
		if err != nil && !errors.Is(err, lease.ErrLeaseNotFound) && ctx.Err() == nil {
			r.failed(c.On.Key, err)
		}
	}
}

// isWatcher reports whether this worker is a watcher: by the rows, or because its probes say that a
// watcher is dead and it is next. The rows say so later, since a dead worker's row counts as fresh
// when it is seen for the first time.
func (r *run) isWatcher(view lease.View) bool {
	silent := map[string]bool{}
	for _, p := range r.fleet.probes {
		silent[p.watcher] = r.isSilent(p)
	}
	return slices.Contains(view.Watchers(silent), r.cfg.WorkerID)
}

func (r *run) isSilent(p probe) bool { return time.Since(p.changed) > r.cfg.Failover }

// note chooses the rows by which this worker sees whether the watchers live. A silent watcher stays
// silent until its row changes.
func (r *run) note(watchers []string) {
	old := r.fleet.probes
	r.fleet.probes = nil
	for _, name := range watchers {
		if name == r.cfg.WorkerID {
			continue
		}
		p := probe{watcher: name, changed: time.Now()}
		p.row, p.mark, _ = r.fleet.watch.LifeOf(name)
		for _, o := range old {
			if o.watcher != name || !r.isSilent(o) {
				continue
			}
			s, _ := r.fleet.watch.Seen(o.row)
			if mark, ok := s.LifeOf(name); ok && mark == o.mark {
				p = o
			}
		}
		r.fleet.probes = append(r.fleet.probes, p)
	}
}

// probeWatcher looks at the row of one watcher, in turn. It returns true if the whole table must be looked
// at, since the watcher is silent or has left the row.
func (r *run) probeWatcher(ctx context.Context) (bool, error) {
	f := &r.fleet
	if len(f.probes) == 0 {
		return true, nil
	}
	if f.checks++; f.checks%2 == 1 {
		return false, nil // every second check: each watcher once in half the failover time
	}
	f.turn++
	p := &f.probes[f.turn%len(f.probes)]
	if p.row == "" {
		return true, nil
	}
	l, err := r.table.Get(ctx, p.row)
	if errors.Is(err, lease.ErrLeaseNotFound) || errors.Is(err, lease.ErrUnreadableRow) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	mark, ok := l.LifeOf(p.watcher)
	if !ok {
		return true, nil
	}
	if mark != p.mark {
		p.mark, p.changed = mark, time.Now()
	}
	return r.isSilent(*p), nil
}
