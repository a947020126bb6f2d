package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// fleet is what the coordinator knows of the other workers. Two workers, the watchers, look at the
// whole table every quarter of the failover time. The others look only at the start, after events
// of their own, and as long as the plan has a move for them. In between they find by the index by
// owner what they were given, and look now and then at one row of each watcher.
//
// It belongs to the coordinator.
type fleet struct {
	run       *run
	watch     lease.Watch
	looks     int // complete looks
	index     bool
	watching  bool // this worker is a watcher
	withJava  bool // a worker lives that passes no lease
	concerned bool // the last plan has a move for this worker
	// since has the moves of the last plan, and when they were first planned.
	since   map[lease.Move]time.Time
	waiting bool // leases without an owner are new in the plan
	// expires is when the next lease of another worker expires unless it is renewed.
	expires time.Time
	probes  []probe
	checks  int   // how often check looked after the watchers, or passed them over
	turn    int   // how often it looked
	card    *card // this worker's; nil if there is none
	refused bool  // the role may not add the index

	unclaimed unclaimed
}

// look looks at the whole table, plans for the whole fleet, and carries out this worker's part. It
// returns true if the work of Config.Once is done.
func (r *run) look(ctx context.Context) (bool, error) {
	r.fleet.concerned = true // until the plan says otherwise: a failed look is repeated
	list := r.table.Look
	if r.once != nil {
		list = r.table.List // it concludes that the work is done
	}
	if r.fleet.looks < 2 {
		list = r.table.List // it must see the workers that come at the same time
	}
	leases, skipped, err := list(ctx)
	if err != nil {
		return false, err
	}
	r.reportRows(skipped)
	now := time.Now()
	sightings := r.fleet.watch.Update(now, leases)
	if err := r.fleet.mine(ctx, sightings); err != nil {
		return false, err
	}
	view := r.fleet.watch.View(now, r.cfg.Failover)
	r.looked(now, leases, skipped, view)
	if r.once != nil {
		left, err := r.unsettled(ctx, now, sightings, skipped)
		if err != nil || r.once.finished {
			return err == nil, err
		}
		work := make(map[runnel.ShardID]bool, len(left))
		for _, s := range left {
			work[s.Key] = true
		}
		view.Rows = slices.DeleteFunc(view.Rows, func(row lease.Row) bool { return !work[row.Key] })
	}
	if r.fleet.looks++; r.fleet.looks == 1 && r.fleet.introduce(ctx, leases) {
		return false, nil
	}
	r.fleet.withJava = slices.ContainsFunc(view.Members, func(m lease.Member) bool {
		return m.Java
	})
	view.Members = r.fleet.withMe(view.Members, false)
	r.fleet.watching = r.fleet.isWatcher(view)
	r.figures.watch(r.fleet.watching)
	r.fleet.act(ctx, now, view.Plan())
	r.fleet.expires = r.fleet.nextExpiry(now, sightings)
	r.fleet.sweepCards(ctx, now)
	r.fleet.sweepCompleted(ctx, view, leases)
	return false, nil
}

// withMe returns the members with this worker, whose own row or card may be older than its state.
func (f *fleet) withMe(members []lease.Member, leaving bool) []lease.Member {
	me := lease.Member{Name: f.run.cfg.WorkerID, MaxLeases: f.run.cfg.MaxLeases, Leaving: leaving}
	members = slices.DeleteFunc(members, func(m lease.Member) bool { return m.Name == me.Name })
	return append(members, me)
}

// nextExpiry returns when the first lease of another worker expires that is not renewed by then.
func (f *fleet) nextExpiry(now time.Time, sightings []lease.Sighting) time.Time {
	next := now.Add(f.run.cfg.Failover)
	for _, s := range sightings {
		at := s.Changed.Add(f.run.cfg.Failover)
		if s.Owner != "" && s.Owner != f.run.cfg.WorkerID && at.After(now) && at.Before(next) {
			next = at
		}
	}
	return next.Add(time.Millisecond)
}

// lookPause returns the time until the next look; false if no look is due.
func (f *fleet) lookPause() (time.Duration, bool) {
	quarter := f.run.cfg.Failover / 4
	switch {
	case f.looks == 1 || f.watching && f.waiting:
		return f.run.soon(), true // a newcomer's second look, or whether a lease was taken
	case f.run.once != nil && len(f.run.held) == 0:
		// Only the work of other workers is left to wait for.
		return jittered(min(quarter, 250*time.Millisecond)), true
	case !f.watching && !f.concerned && f.run.once == nil:
		return 0, false
	}
	pause := jittered(quarter)
	if until := time.Until(f.expires); until > 0 {
		pause = min(pause, until)
	}
	return pause, true
}

// part is this worker's part of a plan.
type part struct {
	take, expired, rob []lease.Sighting
	assign             []lease.Move // in the name of others
	ask                []lease.Move
}

// act carries out this worker's part of the plan.
func (f *fleet) act(ctx context.Context, now time.Time, plan lease.FleetPlan) {
	f.concerned, f.waiting = false, false
	before := f.since
	f.since = make(map[lease.Move]time.Time, len(plan.Moves))
	var p part
	room := f.room()
	for _, m := range plan.Moves {
		first, planned := before[m]
		if !planned {
			first = now
		}
		f.since[m] = first
		if m.To == f.run.cfg.WorkerID || m.From == f.run.cfg.WorkerID {
			f.concerned = true
		}
		f.waiting = f.waiting || m.Kind == lease.MoveTake && !planned
		s, there := f.watch.Seen(m.Key)
		if !there || f.run.held[m.Key] != nil && m.From != f.run.cfg.WorkerID {
			continue
		}
		f.choose(&p, m, s, now.Sub(first), &room, plan.Watchers)
	}
	f.note(plan.Watchers)
	f.reportUnclaimed(now, plan)
	f.assign(ctx, p.assign)
	f.ask(ctx, now, p.ask)
	f.run.take(ctx, p.take, EventLeaseTaken)
	f.run.take(ctx, p.expired, EventLeaseExpired)
	f.run.take(ctx, p.rob, EventLeaseStolen)
}

// room is the number of leases that the worker may take.
func (f *fleet) room() int {
	if f.run.cfg.MaxLeases == 0 {
		return 1 << 30
	}
	return max(0, f.run.cfg.MaxLeases-len(f.run.held))
}

// choose adds a move to this worker's part, if it belongs to it. age is the time for which the plan
// has had the move.
//
// A lease whose owner has died is silent already, so a watcher takes it at once, also beyond its
// share, and passes it on afterwards. If both watchers did that, one of them would be refused; so
// the second one waits for the next look. A lease that has no owner is left to the worker that
// should have it until the next look. An owner passes what it should not have unasked, but only if
// two looks in a row say so, since a newcomer asks by itself, and only to a worker whose life it
// has seen: a dead one would leave the shard silent. A watcher asks for others if a move has waited
// longer: the two workers concerned may not look at the table.
func (f *fleet) choose(
	p *part, m lease.Move, s lease.Sighting, age time.Duration, room *int, watchers []string,
) {
	mine := m.To == f.run.cfg.WorkerID
	switch {
	case m.Kind == lease.MoveTake:
		silent := s.Owner != ""
		turn := age > 0 || silent && f.firstWatcher(m.Key, watchers)
		switch {
		case !mine && !(f.watching && turn):
		case *room > 0:
			*room--
			if silent {
				p.expired = append(p.expired, s)
			} else {
				p.take = append(p.take, s)
			}
		case !mine && f.index && f.watch.Alive(m.To):
			p.assign = append(p.assign, m)
		}
	case m.Kind == lease.MoveRob && mine && *room > 0:
		*room--
		p.rob = append(p.rob, s)
	case m.Kind == lease.MovePass && m.From == f.run.cfg.WorkerID:
		if h := f.run.held[m.Key]; h != nil && age > 0 && f.watch.Alive(m.To) &&
			f.reaches(m.To, watchers) {
			h.depart(departure{to: m.To})
		}
	case m.Kind == lease.MovePass && (mine && *room > 0 ||
		f.watching && f.index && age > f.run.cfg.Failover):
		p.ask = append(p.ask, m)
	}
}

// reaches reports whether a worker finds out that it was given a lease for which it did not ask.
func (f *fleet) reaches(worker string, watchers []string) bool {
	return f.index || slices.Contains(watchers, worker)
}

// firstWatcher reports whether this worker is the first of the watchers to take a dead worker's
// lease.
func (f *fleet) firstWatcher(key runnel.ShardID, watchers []string) bool {
	if len(watchers) == 0 {
		return true
	}
	sum := 0
	for _, c := range key {
		sum += int(c)
	}
	first := watchers[sum%len(watchers)]
	return first == f.run.cfg.WorkerID || !slices.Contains(watchers, f.run.cfg.WorkerID)
}

// assign takes leases of dead workers in the name of others, because this worker has no room.
func (f *fleet) assign(ctx context.Context, moves []lease.Move) {
	f.each(moves, func(m lease.Move, s lease.Sighting) {
		_, err := f.run.table.Assign(ctx, s.Lease, m.To)
		if err != nil && !errors.Is(err, lease.ErrLeaseLost) && ctx.Err() == nil {
			f.run.failed(m.Key, err)
		}
	})
}

// ask asks the holders of leases to pass them to the workers that should have them, and repeats
// what was asked before, so that the holders see that the asker lives.
func (f *fleet) ask(ctx context.Context, now time.Time, moves []lease.Move) {
	f.each(moves, func(m lease.Move, s lease.Sighting) {
		beat := int64(1)
		if ask, ok := s.Asked(); ok {
			age := now.Sub(s.AskChanged)
			switch {
			case ask.Worker == m.To && age < f.run.cfg.Failover/2:
				return
			case ask.Worker == m.To:
				beat = ask.Beat + 1
			case age <= f.run.cfg.Failover:
				return // another worker was first
			}
		}
		err := f.run.table.Ask(ctx, s.Lease, lease.Ask{Worker: m.To, Beat: beat})
		switch {
		case err == nil:
			f.run.observe(Event{Kind: EventLeaseAsked, ShardID: m.Key, Other: s.Owner})
		case !errors.Is(err, lease.ErrAskRefused) && ctx.Err() == nil:
			f.run.failed(m.Key, err)
		}
	})
}

func (f *fleet) each(moves []lease.Move, do func(lease.Move, lease.Sighting)) {
	var group errgroup.Group
	group.SetLimit(takesAtOnce)
	for _, m := range moves {
		s, there := f.watch.Seen(m.Key)
		if !there {
			continue
		}
		group.Go(func() error {
			do(m, s)
			return nil
		})
	}
	_ = group.Wait()
}
