package shardlog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// drainer is the goroutine that writes, rolls and removes segment files. A queue holds the shards
// that need work, each at most once. The goroutine takes the whole queue and gives each shard a
// turn; meanwhile the next batches gather, so that each shard's go into one write. A shard whose
// write failed is set aside for RetryDelay while the others continue: a trim may free the space
// that it needs.
type drainer struct {
	store  *Store
	most   int           // bytes that may gather; set by start
	wake   chan struct{} // there is work; capacity 1
	once   sync.Once     // closes stop
	stop   chan struct{}
	done   chan struct{}
	failed atomic.Pointer[error] // why a shard is set aside; nil if none is
	_      [64]byte              // every append reads failed: not in one cache line with mu

	mu struct {
		sync.Mutex
		queue    []*Shard
		queued   map[*Shard]bool
		bytes    int           // of undrained batches
		hurry    int           // the callers that wait for draining without delay
		progress chan struct{} // closed after the next step, if a caller waits for one
	}

	// Only the drainer's goroutine uses the following.
	failing map[*Shard]error
	retry   *time.Timer // runs while any shard is set aside
	buf     []byte      // joins small batches into one write
}

// Waiting bytes are drained without delay when they are so many: for each shard that has some,
// enough for a write that is worth its cost, at least drainBytes, and at most three eighths of what
// the log lets wait: the rest takes the batches that come during the turns.
const (
	drainBytes    = 1 << 20
	drainPerShard = 8 << 10
)

func newDrainer(s *Store) *drainer {
	d := &drainer{
		store:   s,
		wake:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
		failing: map[*Shard]error{},
	}
	d.mu.queued = map[*Shard]bool{}
	return d
}

func (d *drainer) start() {
	_, most := d.store.log.Pending()
	d.most = int(most / 8 * 3)
	d.retry = time.NewTimer(time.Hour)
	d.retry.Stop()
	go d.run()
}

// close ends the goroutine and waits for it. It returns true for the first caller.
func (d *drainer) close() bool {
	first := false
	d.once.Do(func() {
		first = true
		close(d.stop)
	})
	<-d.done
	return first
}

// stalled returns the error that blocks draining, or nil.
func (d *drainer) stalled() error {
	if err := d.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// attend queues a shard that has size bytes of new batches, or was trimmed or deleted. It does
// not block. It wakes the drainer only if the queue was empty or the work is urgent, since it
// runs for every record.
func (d *drainer) attend(sh *Shard, size int) {
	d.mu.Lock()
	first := len(d.mu.queue) == 0
	d.mu.bytes += size
	if !d.mu.queued[sh] {
		d.mu.queued[sh] = true
		d.mu.queue = append(d.mu.queue, sh)
	}
	wake := first || d.urgentLocked()
	d.mu.Unlock()
	if wake {
		d.signal()
	}
}

func (d *drainer) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// finished subtracts size bytes of drained batches.
func (d *drainer) finished(size int) {
	d.mu.Lock()
	d.mu.bytes -= size
	d.mu.Unlock()
}

func (d *drainer) run() {
	defer close(d.done)
	defer d.retry.Stop()
	for d.sleep() {
		round := d.take()
		d.begin(round)
		for _, sh := range round {
			more, err := sh.drain()
			if more {
				d.attend(sh, 0)
			}
			d.note(sh, err)
			d.step()
			select {
			case <-d.stop:
				return
			default:
			}
		}
	}
}

// Shards of a round without a segment, from which on several goroutines make the segments.
const (
	manyFresh = 64
	beginners = 16
)

// begin makes the first segments of many shards at once. It takes several system calls for each
// shard, and a goroutine that returns from a long one queues for a processor behind the calls of
// clients. A failure shows in the shard's turn, which tries again.
func (d *drainer) begin(round []*Shard) {
	var fresh []*Shard
	for _, sh := range round {
		if sh.active == nil {
			fresh = append(fresh, sh)
		}
	}
	if len(fresh) < manyFresh {
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range beginners {
		group.Go(func() {
			for n := next.Add(1); int(n) <= len(fresh) && !stopped(d.stop); n = next.Add(1) {
				fresh[n-1].begin()
			}
		})
	}
	group.Wait()
}

// note records whether the shard's last turn failed.
func (d *drainer) note(sh *Shard, err error) {
	switch {
	case err == nil && len(d.failing) == 0:
		return
	case err == nil:
		delete(d.failing, sh)
	default:
		if len(d.failing) == 0 {
			d.retry.Reset(d.store.cfg.RetryDelay)
		}
		d.failing[sh] = fmt.Errorf("%w: shard %d: %w", ErrStalled, sh.id, err)
	}
	d.failed.Store(nil)
	for _, err := range d.failing {
		d.failed.Store(&err)
		break
	}
	d.store.log.Obstruct(d.store.Err())
}

// sleep waits for work, and then lets more of it gather. It returns false at the end.
func (d *drainer) sleep() bool {
	select {
	case <-d.wake:
	case <-d.retry.C:
		d.tryAgain()
		return true
	case <-d.stop:
		return false
	}
	gather := time.NewTimer(d.store.cfg.DrainDelay)
	defer gather.Stop()
	for !d.urgent() {
		select {
		case <-d.wake:
		case <-gather.C:
			return true
		case <-d.retry.C:
			d.tryAgain()
			return true
		case <-d.stop:
			return false
		}
	}
	return true
}

// tryAgain puts the shards that were set aside back into the queue.
func (d *drainer) tryAgain() {
	for sh := range d.failing {
		d.attend(sh, 0)
	}
	if len(d.failing) > 0 {
		d.retry.Reset(d.store.cfg.RetryDelay)
	}
}

func (d *drainer) urgent() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.urgentLocked()
}

func (d *drainer) urgentLocked() bool {
	enough := min(max(drainBytes, drainPerShard*len(d.mu.queue)), d.most)
	return d.mu.hurry > 0 || d.mu.bytes >= enough
}

// take empties the queue and returns the shards that were in it.
func (d *drainer) take() []*Shard {
	d.mu.Lock()
	defer d.mu.Unlock()
	queue := d.mu.queue
	d.mu.queue = nil
	clear(d.mu.queued)
	return queue
}

// step wakes the callers of wait and relieved after a change.
func (d *drainer) step() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.progress != nil {
		close(d.mu.progress)
		d.mu.progress = nil
	}
}

// relieved waits until at most limit bytes are undrained, or until segments cannot be written: a
// start on a full disk must end, or nothing could ever be deleted. The run before held the bytes
// that do not fit in memory as well. Errors: a failed sync's, ErrClosed.
func (d *drainer) relieved(limit int) error {
	few := func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.mu.bytes <= limit
	}
	if few() {
		return nil
	}
	err := d.wait(nil, few)
	if errors.Is(err, ErrStalled) {
		return nil
	}
	return err
}

// drainedBy makes the drainer hurry until ready is true. Errors: ctx's, Store.Err's,
// ErrClosed.
func (d *drainer) drainedBy(ctx context.Context, ready func() bool) error {
	err := d.wait(ctx.Done(), ready)
	if errors.Is(err, errStopped) {
		return ctx.Err()
	}
	return err
}

// wait makes the drainer hurry until ready is true. Errors: errStopped once stop is closed,
// Store.Err's, ErrClosed.
func (d *drainer) wait(stop <-chan struct{}, ready func() bool) error {
	d.hurry(1)
	defer d.hurry(-1)
	for {
		d.mu.Lock()
		if d.mu.progress == nil {
			d.mu.progress = make(chan struct{})
		}
		progress := d.mu.progress
		d.mu.Unlock()
		if ready() {
			return nil
		}
		if err := d.store.Err(); err != nil {
			return err
		}
		select {
		case <-progress:
		case <-stop:
			return errStopped
		case <-d.done:
			return ErrClosed
		}
	}
}

func (d *drainer) hurry(by int) {
	d.mu.Lock()
	d.mu.hurry += by
	d.mu.Unlock()
	if by > 0 {
		d.signal()
	}
}
