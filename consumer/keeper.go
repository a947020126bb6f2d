package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/sink"
)

// ErrLeaseExpired is the cause of a handler's cancelled context if the lease could not be renewed
// in time: other workers may take it any moment now.
var ErrLeaseExpired = errors.New("the lease could not be renewed in time")

// keeper owns one lease's row as long as the worker holds the lease. It is the only writer of the
// row in the process, so heartbeats and checkpoints never compete for the counter. Checkpoints that
// are posted faster than they may be written are merged, and each serves as a heartbeat.
//
// The worker counts its time from before it sent a write, the others from after they saw it. So the
// worker's time is over first, whatever the clocks say, as long as each runs evenly. A tenth of the
// failover time is kept as a margin for uneven clocks, and for the reader to stop.
type keeper struct {
	key      runnel.ShardID // of the lease
	table    *lease.Table
	states   *states // for the filter's states that are too large for the row
	failover time.Duration
	interval time.Duration // between two checkpoints
	wrote    func(sink.Committed)
	asked    func(lease.Ask) // another worker should have the lease
	paused   func(bool)      // the row says whether the shard is paused
	failed   func(runnel.ShardID, error)
	busy     func() time.Duration              // the worker's time in handlers so far
	behind   func(now time.Time) time.Duration // the distance to the stream's tip

	wake chan struct{} // one place: wakes run after a post or a request
	quit chan struct{} // closed to end run after the write in hand
	over chan struct{} // closed when no further write comes
	end  sync.Once     // closes over

	mu struct {
		sync.Mutex
		posted sink.Committed // the newest checkpoint to write
		// known is a handler's filter at posted, or, before the first post, at the row's
		// checkpoint; nil if it is not known, or a sink has it.
		known *aggregate.Filter
		stale bool // known is of an earlier position than posted
		// seeks counts the seeks. posted, known and complete are of the reading after the last one.
		seeks  int
		rewind *rewind // the last seek, until the row has it
		saves  saves   // of known's state, if that is too large for the row
		end    string  // the sink's token for the shard's end
		early  bool    // a heartbeat is due at once
		// complete belongs to posted, or, before the first post, to the row's checkpoint.
		complete time.Time
		renewed  instant       // before the last successful write was sent
		bytes    int64         // of the data delivered since then
		worked   time.Duration // busy at that time
		beaten   chan struct{} // closed at the next successful write
	}

	saving sync.WaitGroup // of the state that is being saved

	// These belong to run while it runs, and afterwards to the goroutine that waited for it. Others
	// read held under the lock.
	held   lease.Lease
	tried  time.Time // when the last write was sent, successful or not
	misses int       // failures in a row
}

func (r *run) newKeeper(held lease.Lease, renewed instant) *keeper {
	k := &keeper{
		key: held.Key, table: r.table, states: r.states, failover: r.cfg.Failover, failed: r.failed,
		interval: min(r.cfg.CheckpointInterval, r.cfg.Failover/2),
		wake:     make(chan struct{}, 1), quit: make(chan struct{}), over: make(chan struct{}),
		held: held, tried: renewed.Time, busy: r.busy.spent, paused: func(bool) {},
	}
	k.mu.worked = r.busy.spent()
	k.mu.complete, k.mu.renewed, k.mu.beaten = held.Complete, renewed, make(chan struct{})
	return k
}

// instant is a moment by the monotonic clock and by the wall clock. The monotonic clock does not
// count the time for which a machine was suspended.
type instant struct {
	time.Time
	wall time.Time
}

func moment() instant { return instant{Time: time.Now(), wall: seam.Wall()} }

// elapsed returns the time since then by each clock.
func (i instant) elapsed() (monotonic, wall time.Duration) {
	return time.Since(i.Time), seam.Wall().Sub(i.wall)
}

// complete sets the time up to which the shard is complete; the next write to the row carries it.
func (k *keeper) complete(to time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.complete = to
}

func (k *keeper) completeTo() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.complete
}

// entry is a write to the row.
type entry struct {
	held   lease.Lease    // with the additions of the write
	seeks  int            // before it
	rewind *rewind        // the row goes to its position, and nothing else is written
	c      sink.Committed // the newest checkpoint
	mark   lease.Mark     // it, if the row does not hold it yet; else zero
	large  []byte         // the filter's state there, if it is too large for the row
}

// rewind is a seek that the row does not have yet.
type rewind struct {
	to   runnel.Position
	done chan struct{} // closed when the row has it
}

// toWrite returns the next write. All of it is of one moment, since the time and the state must not
// be written without their checkpoint. ended makes it that of the shard's end.
func (k *keeper) toWrite(ended bool) entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.early = false
	e := entry{held: k.held, c: k.mu.posted, seeks: k.mu.seeks}
	e.held.Complete = k.mu.complete
	if since, _ := k.mu.renewed.elapsed(); since > 0 {
		e.held.Stats, e.held.ThroughputKBps = measured(k.held, lease.Stats{
			At:     seam.Wall().Truncate(time.Millisecond).UTC(),
			Behind: k.behind(time.Now()).Truncate(time.Millisecond),
			Busy:   min(1, (k.busy()-k.mu.worked).Seconds()/since.Seconds()),
		}, k.mu.bytes, since, k.failover/2)
	}
	switch {
	case k.mu.rewind != nil:
		e.rewind = k.mu.rewind
		return e
	case ended:
		e.mark = lease.Mark{At: runnel.End(), Token: k.mu.end}
	case k.unwritten():
		e.mark = lease.Mark{At: k.mu.posted.End, Token: k.mu.posted.Token}
	default:
		return e
	}
	e.large = k.addState(&e.mark)
	return e
}

// know sets the filter at the last checkpoint, which then belongs to the keeper. It does nothing if
// the shard was sought since then.
func (k *keeper) know(filter *aggregate.Filter, seeks int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.seeks == seeks {
		k.mu.known = filter
	}
}

// knows returns a copy of the filter at the last checkpoint; nil if it is not known.
func (k *keeper) knows() *aggregate.Filter {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.known == nil || k.mu.stale {
		return nil
	}
	return k.mu.known.Clone()
}

func (k *keeper) unwritten() bool {
	c := k.mu.posted
	return k.mu.rewind != nil || c.End.Sequence.IsNumber() && (c.End != k.held.Checkpoint ||
		c.Token != k.held.Token || k.mu.saves.news(k.held))
}

// measure notes the bytes of data that were delivered, for the row's Stats.
func (k *keeper) measure(bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.bytes += bytes
}

// post requests a checkpoint, which is written when it is due; a newer one replaces it. steps lead
// from the filter at the checkpoint before to the one here, or, unless it is exact, to an earlier
// one: the row then keeps its old state, and the next reader brings that up.
func (k *keeper) post(c sink.Committed, steps []step, exact bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.advance(steps)
	k.mu.posted, k.mu.stale = c, !exact
	k.rouse()
	return err
}

// seek requests that the row goes to a position, at once. Nothing that was known of the reading
// before counts any more.
func (k *keeper) seek(to runnel.Position, complete time.Time) *rewind {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.seeks++
	k.mu.rewind = &rewind{to: to, done: make(chan struct{})}
	k.mu.early = true
	k.mu.posted, k.mu.known, k.mu.stale = sink.Committed{End: to}, nil, false
	k.mu.end, k.mu.complete = "", complete
	k.rouse()
	return k.mu.rewind
}

// sought waits until the row has a seek. It returns errVoid if the row does not get it: another
// seek came behind it, or the lease is gone.
func (k *keeper) sought(ctx context.Context, r *rewind) error {
	return k.wait(ctx, func() (bool, error) {
		select {
		case <-r.done:
			return true, nil
		default:
			if k.mu.rewind != r {
				return false, errVoid
			}
			return false, nil
		}
	})
}

// written waits until the row has a checkpoint that was posted after so many seeks, and has it
// written at once. It returns errVoid if the row does not get it.
func (k *keeper) written(ctx context.Context, at runnel.Position, seeks int) error {
	k.renewSoon()
	return k.wait(ctx, func() (bool, error) {
		if k.mu.seeks != seeks {
			return false, errVoid
		}
		return k.mu.rewind == nil && !k.held.Processed().Less(at), nil
	})
}

// wait waits until is returns true, under the lock, or an error.
func (k *keeper) wait(ctx context.Context, is func() (bool, error)) error {
	for last := false; ; {
		k.mu.Lock()
		done, err := is()
		beaten := k.mu.beaten
		k.mu.Unlock()
		switch {
		case done || err != nil:
			return err
		case last:
			return errVoid
		}
		select {
		case <-beaten:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-k.over:
			last = true
		}
	}
}

// close says that no further write comes.
func (k *keeper) close() { k.end.Do(func() { close(k.over) }) }

// ended keeps the sink's token for the shard's end, until the row says SHARD_END.
func (k *keeper) ended(token string, steps []step) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.end = token
	return k.advance(steps)
}

func (k *keeper) advance(steps []step) error {
	for _, s := range steps {
		if s.base != nil {
			k.mu.known = s.base
		}
		if k.mu.known == nil || len(s.change) == 0 {
			continue
		}
		delta := new(aggregate.Delta)
		if err := delta.UnmarshalBinary(s.change); err != nil {
			return fmt.Errorf("the filter's change: %w", err)
		}
		k.mu.known.Apply(delta)
	}
	return nil
}

// renewSoon requests a heartbeat now, to find out whether the lease is still held.
func (k *keeper) renewSoon() {
	k.mu.Lock()
	k.mu.early = true
	k.mu.Unlock()
	k.rouse()
}

func (k *keeper) rouse() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// pending reports whether there is a checkpoint that the row does not hold yet.
func (k *keeper) pending() (early, checkpoint bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.early, k.unwritten()
}

// lastPosted returns the newest checkpoint posted, if any.
func (k *keeper) lastPosted() sink.Committed {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.posted
}

// valid is the time for which the worker may rely on a write.
func (k *keeper) valid() time.Duration { return k.failover - k.failover/10 }

// deadline is the time at which the worker treats the lease as lost.
func (k *keeper) deadline() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.renewed.Add(k.valid())
}

// ensure returns nil if the lease is certainly held, and must be called before each batch. A worker
// that was paused for longer than its lease gets ErrLeaseExpired. If only the wall clock says so,
// the machine was suspended or the clock has jumped: the row says which, so the call waits for a
// heartbeat.
func (k *keeper) ensure(ctx context.Context) error {
	for {
		k.mu.Lock()
		monotonic, wall := k.mu.renewed.elapsed()
		beaten := k.mu.beaten
		k.mu.Unlock()
		switch {
		case monotonic >= k.valid():
			return fmt.Errorf("lease %s: %w", k.key, ErrLeaseExpired)
		case wall < k.valid():
			return nil
		}
		k.renewSoon()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-beaten:
		case <-k.quit:
			return errStopping
		}
	}
}

// kept notes a successful write, and passes on what others have written into the row.
func (k *keeper) kept(held lease.Lease, sent instant) {
	k.misses = 0
	k.mu.Lock()
	k.held = held // under the lock, for written
	k.mu.renewed, k.mu.bytes, k.mu.worked = sent, 0, k.busy()
	close(k.mu.beaten)
	k.mu.beaten = make(chan struct{})
	k.mu.Unlock()
	k.paused(held.Paused)
	if ask, ok := held.Asked(); ok {
		k.asked(ask)
	}
}

// run keeps the lease until quit is closed or ctx is done, and then returns nil. If the lease is
// lost before, it returns an error that is lease.ErrLeaseLost or ErrLeaseExpired.
func (k *keeper) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer k.saving.Wait()
	defer cancel()
	for {
		timer.Reset(time.Until(k.due()))
		select {
		case <-ctx.Done():
			return nil
		case <-k.quit:
			return nil
		case <-k.wake:
			continue // the next due write may have changed
		case <-timer.C:
		}
		if !time.Now().Before(k.deadline()) {
			return fmt.Errorf("lease %s: %w", k.key, ErrLeaseExpired)
		}
		if err := k.beat(ctx); errors.Is(err, lease.ErrLeaseLost) {
			return err
		}
	}
}

// due returns the time of the next write: a checkpoint after its interval, a heartbeat after half
// the failover time, the next attempt soon after a failure; and never after the deadline. The first
// position of a shard that begins with LATEST is written at once, because a Java worker that takes
// the row would find another meaning of LATEST.
func (k *keeper) due() time.Time {
	early, checkpoint := k.pending()
	var due time.Time
	switch {
	case k.misses > 0:
		due = k.tried.Add(backoff(k.misses, k.failover/16))
	case early, checkpoint && k.held.Checkpoint.Sequence == runnel.Latest:
		due = k.tried
	case checkpoint:
		due = k.tried.Add(k.interval)
	default:
		due = k.tried.Add(jittered(k.failover / 2))
	}
	if deadline := k.deadline(); due.After(deadline) {
		return deadline
	}
	return due
}

// beat writes the row once.
func (k *keeper) beat(ctx context.Context) error {
	life := ctx
	ctx, cancel := context.WithDeadline(ctx, k.deadline())
	defer cancel()
	e := k.toWrite(false)
	checkpoint := !e.mark.IsZero()
	sent := moment()
	k.tried = sent.Time
	var (
		held lease.Lease
		err  error
	)
	switch {
	case e.rewind != nil:
		held, err = k.rewind(ctx, e)
	case checkpoint:
		held, err = k.table.Checkpoint(ctx, e.held, e.mark)
	default:
		held, err = k.table.Renew(ctx, e.held)
	}
	if err != nil {
		k.misses++
		if !errors.Is(err, lease.ErrLeaseLost) && context.Cause(ctx) == nil {
			k.failed(k.key, err)
		}
		return err
	}
	k.kept(held, sent)
	if checkpoint {
		k.wrote(e.c)
		k.save(life, e)
	}
	return nil
}

// rewind moves the row to the position that was sought.
func (k *keeper) rewind(ctx context.Context, e entry) (lease.Lease, error) {
	held, err := k.table.Rewind(ctx, e.held, e.rewind.to)
	if err != nil {
		return held, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	close(e.rewind.done)
	if k.mu.rewind == e.rewind {
		k.mu.rewind = nil
	}
	k.mu.saves.stored, k.mu.saves.large = runnel.Start(), false
	return held, nil
}

// lastWrite is the write with which a holder gives its lease up, with the last checkpoint.
type lastWrite func(context.Context, lease.Lease, lease.Mark) (lease.Lease, error)

// settle runs after run has ended. It does the last write, with further attempts, as long as the
// lease is certainly held. ended says that the shard has ended.
func (k *keeper) settle(ctx context.Context, ended bool, last lastWrite) error {
	ctx, cancel := context.WithDeadlineCause(ctx, k.deadline(), ErrLeaseExpired)
	defer cancel()
	k.saveLast(ctx, ended)
	for attempt := 1; ; attempt++ {
		e := k.toWrite(ended)
		write := func() (lease.Lease, error) { return last(ctx, e.held, e.mark) }
		if e.rewind != nil {
			write = func() (lease.Lease, error) { return k.rewind(ctx, e) }
		}
		held, err := write()
		if err == nil {
			k.mu.Lock()
			k.held = held
			k.mu.Unlock()
		}
		if err == nil && e.rewind != nil {
			continue
		}
		if err == nil && !e.mark.IsZero() && !ended {
			k.wrote(e.c)
		}
		if err == nil || errors.Is(err, lease.ErrLeaseLost) || !transient(err) {
			return err
		}
		if !retry.WaitOr(ctx, backoff(attempt, k.failover/16), nil) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
