package shardlog

import (
	"context"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
)

// Shard holds the records of one shard. Safe for concurrent use.
type Shard struct {
	id     ID
	store  *Store
	seed   uint32 // of its frames' checksums
	folder string
	skips  atomic.Pointer[skips] // nil: none

	sequenced atomic.Uint64 // seq.next, for readers

	// seq is the state after all sequenced frames.
	seq struct {
		sync.Mutex
		next    uint64
		arrival int64
		sealed  bool
		deleted bool
	}

	// pub is the state after all durable frames: the one that readers see. The segments hold the
	// records in [oldest, drained), and possibly trimmed ones before them; the tail holds those
	// in [drained, next).
	pub struct {
		sync.Mutex
		oldest   uint64
		drained  uint64
		next     uint64
		arrival  int64
		sealed   bool
		deleted  bool
		closed   bool
		segments []*segment
		tail     []*batch
		wake     chan struct{} // closed at the next change, if a reader waits

		drainedArrival int64 // of the record before drained
	}

	extras []extra // see lost; belongs to the start

	// Only the drainer's goroutine uses the following.
	active  *segment // the last segment, while it takes records; nil before the first
	touched bool     // the folder exists and holds no foreign segments
}

func newShard(s *Store, id ID) *Shard {
	sh := &Shard{
		id:     id,
		store:  s,
		seed:   frameSeed(id),
		folder: path.Join(s.root, strconv.FormatUint(uint64(id), 10)),
	}
	sh.seq.next = 1
	sh.sequenced.Store(1)
	sh.pub.oldest, sh.pub.drained, sh.pub.next = 1, 1, 1
	return sh
}

// ID returns the shard's id.
func (sh *Shard) ID() ID { return sh.id }

// Bounds returns the visible records as [oldest, next): the oldest that is not trimmed, and one
// past the newest durable one.
func (sh *Shard) Bounds() (oldest, next uint64) {
	sh.pub.Lock()
	defer sh.pub.Unlock()
	return sh.pub.oldest, sh.pub.next
}

// Sequenced returns one past the newest numbered record, durable or not. If a reader calls it
// first, and then finds that the visible records reach that far, no record was on its way to the
// disk at the time of the call.
func (sh *Shard) Sequenced() uint64 { return sh.sequenced.Load() }

// Sealed reports whether the shard is closed, durably. After it has returned true, Bounds' next
// is final.
func (sh *Shard) Sealed() bool {
	sh.pub.Lock()
	defer sh.pub.Unlock()
	return sh.pub.sealed
}

// LastArrival returns the arrival of the newest durable record in ms since 1970, even if that
// record was trimmed since; 0 if there was none.
func (sh *Shard) LastArrival() int64 {
	sh.pub.Lock()
	defer sh.pub.Unlock()
	return sh.pub.arrival
}

// Wait returns nil once a record at index is visible, or the shard is sealed or deleted.
// Errors: ctx's, and ErrClosed.
func (sh *Shard) Wait(ctx context.Context, index uint64) error {
	for {
		sh.pub.Lock()
		done := index < sh.pub.next || sh.pub.sealed || sh.pub.deleted
		closed := sh.pub.closed
		if !done && !closed && sh.pub.wake == nil {
			sh.pub.wake = make(chan struct{})
		}
		wake := sh.pub.wake
		sh.pub.Unlock()
		switch {
		case done:
			return nil
		case closed:
			return ErrClosed
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wakeLocked wakes every Wait.
func (sh *Shard) wakeLocked() {
	if sh.pub.wake != nil {
		close(sh.pub.wake)
		sh.pub.wake = nil
	}
}

// publish makes a durable batch visible and hands it to the drainer. It is the durable
// callback: it must not block.
func (sh *Shard) publish(b *batch) {
	sh.pub.Lock()
	sh.pub.tail = append(sh.pub.tail, b)
	sh.pub.next = b.end()
	sh.pub.arrival = b.arrival
	sh.wakeLocked()
	sh.pub.Unlock()
	sh.store.drain.attend(sh, len(b.frames))
}

func (sh *Shard) publishSeal() {
	sh.pub.Lock()
	defer sh.pub.Unlock()
	sh.pub.sealed = true
	sh.wakeLocked()
}

// publishDelete publishes the deletion. It returns true for the first caller.
func (sh *Shard) publishDelete() bool {
	sh.pub.Lock()
	defer sh.pub.Unlock()
	first := !sh.pub.deleted
	sh.pub.deleted = true
	sh.wakeLocked()
	return first
}

func (sh *Shard) deleted() bool {
	sh.pub.Lock()
	defer sh.pub.Unlock()
	return sh.pub.deleted
}

func (sh *Shard) publishTrim(oldest uint64) {
	sh.pub.Lock()
	sh.pub.oldest = max(sh.pub.oldest, oldest)
	sh.pub.Unlock()
	sh.store.drain.attend(sh, 0)
}

func (sh *Shard) publishClose() {
	sh.pub.Lock()
	defer sh.pub.Unlock()
	sh.pub.closed = true
	sh.wakeLocked()
}
