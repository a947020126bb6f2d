package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/lease"
)

// probe is one watcher, as a worker that does not watch sees it: the row by which it shows its
// life.
type probe struct {
	watcher string
	row     runnel.ShardID
	mark    int64     // the row's counter, or the beat of the watcher's card
	changed time.Time // when this worker first saw the mark
}

// checkPause returns the time until the next check. While leases are under way to this worker it is
// short, because their shards are silent. A watcher's looks find such leases too, so one check
// between two looks is enough.
func (f *fleet) checkPause(afterCheck bool) time.Duration {
	switch {
	case f.concerned && !f.watching || len(f.asked()) > 0:
		return f.run.soon()
	case f.watching && afterCheck:
		return f.run.cfg.Failover / 4
	default:
		return jittered(f.run.cfg.Failover / 8)
	}
}

// asked returns the shards for which this worker has asked, as of the last look.
func (f *fleet) asked() []runnel.ShardID {
	var keys []runnel.ShardID
	for m := range f.since {
		if m.Kind == lease.MovePass && m.To == f.run.cfg.WorkerID && f.run.held[m.Key] == nil {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// check finds the leases that the worker was given, keeps its card alive, and looks after the
// watchers. It returns true if the whole table must be looked at: a watcher is silent, or a static
// worker finds a lease that an earlier process of it holds.
func (f *fleet) check(ctx context.Context) (again bool, err error) {
	given := f.asked()
	if f.index {
		owned, err := f.run.table.Owned(ctx, f.run.cfg.WorkerID)
		switch {
		case err == nil:
			given = owned
		case awserr.DynamoDB.Of(err) == awserr.Caller:
			f.withoutIndex(err)
		default:
			return false, err
		}
	}
	for _, key := range given {
		if f.run.held[key] != nil {
			continue
		}
		l, err := f.run.table.Get(ctx, key)
		switch {
		case err == nil && l.Owner == f.run.cfg.WorkerID && l.Passed():
			f.adopt(ctx, l)
		case err == nil && l.Owner == f.run.cfg.WorkerID && l.Owned():
			if err := f.overtaken(l.Static); err != nil {
				return false, err
			}
			again = again || f.run.cfg.Static // it has not succeeded yet in taking it
		case errors.Is(err, lease.ErrUnreadableRow):
			f.run.reportRow(string(key), err)
		case err != nil && !errors.Is(err, lease.ErrLeaseNotFound):
			return false, err
		}
	}
	f.upkeep(ctx)
	if again || f.watching || f.looks < 2 {
		return again, nil
	}
	return f.probeWatcher(ctx)
}

// adopt takes a lease that was passed to this worker, or gives it back if there is no room for it.
func (f *fleet) adopt(ctx context.Context, l lease.Lease) {
	if f.room() == 0 {
		f.run.release(ctx, l)
		return
	}
	if a := f.run.takeOne(ctx, l); !a.sent.IsZero() {
		f.run.start(ctx, a, Event{Kind: EventLeaseReceived})
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
func (f *fleet) findIndex(ctx context.Context) {
	if f.index || f.refused {
		return
	}
	ready, err := f.run.table.Index(ctx)
	if f.index = ready; awserr.DynamoDB.Of(err) == awserr.Caller {
		f.withoutIndex(err)
	}
}

// withoutIndex notes that the worker's role may not add the index, or not read it.
func (f *fleet) withoutIndex(err error) {
	if f.index = false; !f.refused {
		f.refused = true
		f.run.cfg.Logger.Info("the lease table has no index by owner: workers that do not watch "+
			"the table learn only of leases for which they asked", "worker", f.run.cfg.WorkerID,
			"table", f.run.table.Name(), "error", err)
	}
}

// isWatcher reports whether this worker is a watcher: by the rows, or because its probes say that a
// watcher is dead and it is next. The rows say so later, since a dead worker's row counts as fresh
// when it is seen for the first time.
func (f *fleet) isWatcher(view lease.View) bool {
	silent := map[string]bool{}
	for _, p := range f.probes {
		silent[p.watcher] = f.isSilent(p)
	}
	return slices.Contains(view.Watchers(silent), f.run.cfg.WorkerID)
}

func (f *fleet) isSilent(p probe) bool { return time.Since(p.changed) > f.run.cfg.Failover }

// note chooses the rows by which this worker sees whether the watchers live. A silent watcher stays
// silent until its row changes.
func (f *fleet) note(watchers []string) {
	old := f.probes
	f.probes = nil
	for _, name := range watchers {
		if name == f.run.cfg.WorkerID {
			continue
		}
		p := probe{watcher: name, changed: time.Now()}
		p.row, p.mark, _ = f.watch.LifeOf(name)
		for _, o := range old {
			if o.watcher != name || !f.isSilent(o) {
				continue
			}
			s, _ := f.watch.Seen(o.row)
			if mark, ok := s.LifeOf(name); ok && mark == o.mark {
				p = o
			}
		}
		f.probes = append(f.probes, p)
	}
}

// probeWatcher looks at the row of one watcher, in turn. It returns true if the whole table must be
// looked at, since the watcher is silent or has left the row.
func (f *fleet) probeWatcher(ctx context.Context) (bool, error) {
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
	l, err := f.run.table.Glance(ctx, p.row)
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
	return f.isSilent(*p), nil
}
