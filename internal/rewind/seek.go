package rewind

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/lease"
)

var (
	// ErrSink is returned for an application of a sink, which has positions of its own.
	ErrSink = errors.New("the application's sink keeps the position with its records, and would " +
		"go on there: reset the sink; an archive, for example, begins again in an empty folder " +
		"with another --app")
	// ErrJava is returned if a Java worker holds a lease: it passes none.
	ErrJava = errors.New("a Java worker holds it, which passes no lease: stop the Java workers")
	// ErrTimeout is returned if not all leases could be held in time.
	ErrTimeout = errors.New("not all leases could be held in time")
)

// Seek configures the reset of an application while its workers run.
type Seek struct {
	Table  *lease.Table
	Origin runnel.From // of the application
	// Failover is the fleet's failover time. The longest one that a row says counts if it is above.
	Failover time.Duration
	Wait     time.Duration // the limit on the time until all leases are held
	Worker   string        // the seek's name in the rows, which must be new
	// Goals are the shards' places, as Find found them, and Latest says that they are the newest
	// records of then: a lease that is farther on stays where it is.
	Goals  []Goal
	Latest bool
	// Shards lists the stream's shards anew.
	Shards func(context.Context) ([]runnel.Shard, error)
	// OnHeld is called when all leases are held, before the first position is written; optional.
	OnHeld func(leases int)
	// OnSilent is called for a lease that was taken from a worker which did not pass it and was
	// silent for too long; optional.
	OnSilent func(of lease.Lease, silence time.Duration)
}

// Run asks the workers for every lease that has not ended, holds them all, writes the positions,
// and gives the leases back to no worker in particular. It returns the number of leases that it
// set. begun reports whether a position was written: without one, an error leaves all positions.
//
// No lease is written before all are held. The workers therefore hold nothing then, so none of them
// ends a shard or makes the leases of its children behind Run's back. Leases that appear before
// that, as the children of a split do, are asked for as well. A lease that appears later, by the
// late call of a worker that was paused, shows in one more look at the table, and Run begins anew.
//
// Children are written before their parents. So if Run is killed, the rows that have moved include
// all descendants of each of them, and the workers, which go on when the leases have expired, read
// no child beside its parent. Another Run completes it.
func (s Seek) Run(ctx context.Context) (leases int, begun bool, err error) {
	limited, cancel := context.WithTimeout(ctx, s.Wait)
	defer cancel()
	r := &seeker{Seek: s, held: map[runnel.ShardID]*held{}, asked: map[runnel.ShardID]asked{}}
	r.pace.Store(int64(min(s.Failover, leastPace))) // until the first look, which comes at once
	over := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() { r.renew(context.WithoutCancel(ctx), over) })
	defer renewing.Wait()
	defer close(over)
	for {
		stands, err := r.holdAll(limited)
		if err == nil && !begun && s.OnHeld != nil {
			s.OnHeld(len(r.all()))
		}
		var changes []Change
		if err == nil {
			changes, err = r.plan(limited, stands)
		}
		if err == nil {
			err = r.holdMore(limited, changes)
		}
		if err == nil {
			err = limited.Err()
		}
		if err == nil {
			begun = true
			err = r.write(context.WithoutCancel(ctx), changes)
		}
		var done bool
		if err == nil {
			done, err = r.holdsAll(context.WithoutCancel(ctx))
		}
		switch {
		case done:
			return len(changes), true, r.release(context.WithoutCancel(ctx), false)
		case err == nil, errors.Is(err, lease.ErrLeaseLost) && limited.Err() == nil:
			continue // a lease was taken meanwhile, or made
		case ctx.Err() == nil && limited.Err() != nil:
			err = r.late(err)
		}
		_ = r.release(context.WithoutCancel(ctx), !begun) // the others expire
		return 0, begun, err
	}
}

// leastPace is the shortest failover time of a worker, as consumer.Config has it.
const leastPace = 100 * time.Millisecond

// seeker is a Seek under way.
type seeker struct {
	Seek
	watch   lease.Watch
	asked   map[runnel.ShardID]asked
	parents lineage // of the shards
	// waits are the workers that have not passed a lease, as of the last look.
	waits map[runnel.ShardID]string
	// patience is the failover time that counts, as of the last look.
	patience time.Duration
	// pace is the shortest failover time that a row says, or Failover, as of the last look: the
	// workers take a lease that is not renewed within it.
	pace atomic.Int64

	mu   sync.Mutex
	held map[runnel.ShardID]*held
}

// asked is the last ask for a lease.
type asked struct {
	hold string // that it was for
	beat int64
	at   time.Time
}

// held is a lease that the seeker holds. Its lock serialises the writes to the row.
type held struct {
	created bool // by the seeker
	mu      sync.Mutex
	lease   lease.Lease
	at      time.Time // of the last heartbeat
	lost    bool
}

// late names the workers that have kept Run waiting.
func (r *seeker) late(err error) error {
	for id, owner := range r.waits {
		return fmt.Errorf("%w: %d are missing; %s of %s has not passed %s within %s; it counts as "+
			"dead when it has been silent for the failover time, %s", ErrTimeout, len(r.waits),
			owner, r.Table.Name(), id, r.Wait, r.patience)
	}
	return fmt.Errorf("%w: %w", ErrTimeout, err)
}

func (r *seeker) all() map[runnel.ShardID]*held {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[runnel.ShardID]*held, len(r.held))
	for id, h := range r.held {
		all[id] = h
	}
	return all
}

func (r *seeker) holds(id runnel.ShardID) *held {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[id]
}

func (r *seeker) keep(l lease.Lease, sent time.Time, created bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[l.Key] = &held{lease: l, at: sent, created: created}
}

// change makes a write to a held row. A lease that is lost is held no more.
func (r *seeker) change(
	h *held, write func(lease.Lease) (lease.Lease, error),
) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return lease.ErrLeaseLost
	}
	l, err := write(h.lease)
	switch {
	case err == nil:
		h.lease = l
	case errors.Is(err, lease.ErrLeaseLost):
		h.lost = true
		r.forget(h.lease.Key)
	}
	return err
}

// renew keeps the held leases until over is closed. A failure shows in the next write.
func (r *seeker) renew(ctx context.Context, over <-chan struct{}) {
	for retry.WaitOr(ctx, time.Duration(r.pace.Load())/16, over) {
		pace := time.Duration(r.pace.Load())
		_ = r.eachHeld(func(h *held) error {
			return r.change(h, func(l lease.Lease) (lease.Lease, error) {
				if time.Since(h.at) < pace/4 {
					return l, nil
				}
				h.at = time.Now()
				return r.Table.Renew(ctx, l)
			})
		})
	}
}

// holdAll returns the leases when all that have not ended are held.
func (r *seeker) holdAll(ctx context.Context) ([]lease.Lease, error) {
	for {
		leases, missing, err := r.look(ctx)
		if err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			return leases, nil
		}
		now := time.Now()
		for _, s := range missing {
			if err := r.want(ctx, now, s); err != nil {
				return nil, err
			}
		}
		if err := retry.Wait(ctx, min(100*time.Millisecond, r.Failover/32)); err != nil {
			return nil, err
		}
	}
}

// look reads the table, and returns the leases that have not ended and are not held.
func (r *seeker) look(ctx context.Context) ([]lease.Lease, []lease.Sighting, error) {
	leases, skipped, err := r.Table.List(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case len(skipped) > 0:
		return nil, nil, fmt.Errorf("a row cannot be read: %s", skipped[0])
	}
	if err := Refuse(leases); err != nil {
		return nil, nil, err
	}
	r.patience = max(r.Failover, lease.LongestFailover(leases))
	pace := r.Failover
	for _, l := range leases {
		if l.Failover > 0 {
			pace = min(pace, max(l.Failover, leastPace))
		}
	}
	r.pace.Store(int64(pace))
	var missing []lease.Sighting
	r.waits = map[runnel.ShardID]string{}
	for _, s := range r.watch.Update(time.Now(), leases) {
		if !s.Ended() && r.holds(s.Key) == nil {
			missing = append(missing, s)
			r.waits[s.Key] = s.Owner
		}
	}
	return leases, missing, nil
}

func (r *seeker) holdsAll(ctx context.Context) (bool, error) {
	_, missing, err := r.look(ctx)
	return len(missing) == 0, err
}

// want takes a lease that has no live owner or was passed, and asks the owner for it otherwise.
func (r *seeker) want(ctx context.Context, now time.Time, s lease.Sighting) error {
	silence := now.Sub(s.Changed)
	switch {
	case s.Owner == "", s.Owner == r.Worker, silence > r.patience+r.patience/10:
		_, err := r.take(ctx, s.Lease)
		if err == nil && s.Owner != "" && s.Owner != r.Worker && r.OnSilent != nil {
			r.OnSilent(s.Lease, silence)
		}
		return ignoreLost(err) // another worker was first, or its owner lives
	case !s.Owned() && r.watch.Alive(s.Owner):
		return fmt.Errorf("shard %s: %w: %s", s.Key, ErrJava, s.Owner)
	case !s.Owned():
		return nil // it may be dead
	}
	a := r.asked[s.Key]
	if ask, ok := s.Asked(); ok && ask.Worker == r.Worker && a.hold == s.Hold &&
		now.Sub(a.at) < r.Failover/2 {
		return nil
	}
	a = asked{hold: s.Hold, beat: a.beat + 1, at: now}
	r.asked[s.Key] = a
	err := r.Table.Ask(ctx, s.Lease, lease.Ask{Worker: r.Worker, Beat: a.beat, ByHand: true})
	if errors.Is(err, lease.ErrAskRefused) {
		return nil // the row has changed: the next look shows how
	}
	return err
}

func ignoreLost(err error) error {
	if errors.Is(err, lease.ErrLeaseLost) {
		return nil
	}
	return err
}

func (r *seeker) take(ctx context.Context, seen lease.Lease) (lease.Lease, error) {
	sent := time.Now()
	l, err := r.Table.Take(ctx, seen, lease.Claim{Worker: r.Worker, Origin: r.Origin})
	if err == nil {
		r.keep(l, sent, false)
	}
	return l, err
}
