package wal

import (
	"context"
	"slices"
	"sync"
)

// These are parts of the room; the default of Config.MaxPending is 64 MiB.
const (
	// smallPart is for the bytes of a caller that need not wait behind larger ones, 16 KiB: the
	// write of a lease must not wait behind tens of megabytes of records, or its holder loses it.
	smallPart = 4096
	// queuedPart is for the bytes that may await their write and sync before further large callers
	// wait, 8 MiB. Whatever is sequenced behind them waits for their write.
	queuedPart = 8
	// A caller with more than largePart, 800 KiB, is a piece of a large call. It waits while
	// largeQueuedPart, 2 MiB, awaits its write and sync: a lease's write that comes then waits for
	// that much, twice at the most.
	largePart       = 80
	largeQueuedPart = 32
	// bypassPart is for the bytes of small callers that may go before the first large one, 16 MiB.
	bypassPart = 4
)

// room limits the pending bytes. It admits callers first come, first served, but small ones before
// large ones that wait.
type room struct {
	max int64
	mu  struct {
		sync.Mutex
		used     int64 // pending and held
		queued   int64 // that await their write and sync
		bypassed int64 // of small callers, since a caller was last admitted in its turn
		waiting  []*roomWaiter
		refuse   error // why the room admits no caller; nil if it does
	}
}

type roomWaiter struct {
	size  int64
	ready chan error
}

// take waits until size bytes fit, and counts them. A caller with more bytes than the whole room
// is admitted alone.
func (r *room) take(ctx context.Context, size int64) error {
	r.mu.Lock()
	switch {
	case r.mu.refuse != nil:
		defer r.mu.Unlock()
		return r.mu.refuse
	case len(r.mu.waiting) == 0 && r.fits(size), r.bypasses(size):
		r.count(size)
		r.mu.Unlock()
		return nil
	}
	w := &roomWaiter{size: size, ready: make(chan error, 1)}
	r.mu.waiting = append(r.mu.waiting, w)
	r.mu.Unlock()
	select {
	case err := <-w.ready:
		return err
	case <-ctx.Done():
		r.leave(w)
		return ctx.Err()
	}
}

func (r *room) count(size int64) {
	r.mu.used += size
	r.mu.queued += size
}

// fits reports whether a caller has room in its turn.
func (r *room) fits(size int64) bool {
	queue := r.max / queuedPart
	if size > r.max/largePart {
		queue = r.max / largeQueuedPart
	}
	return (r.mu.used <= 0 || r.mu.used+size <= r.max) &&
		(r.mu.queued <= 0 || r.mu.queued+size <= queue || size <= r.max/smallPart)
}

// bypasses reports whether a small caller has room before its turn, and counts it then.
func (r *room) bypasses(size int64) bool {
	most := r.max / bypassPart
	if size > r.max/smallPart || r.mu.bypassed+size > most || r.mu.used+size > r.max+most {
		return false
	}
	r.mu.bypassed += size
	return true
}

// leave removes a waiter that gave up.
func (r *room) leave(w *roomWaiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, other := range r.mu.waiting {
		if other == w {
			r.mu.waiting = append(r.mu.waiting[:i], r.mu.waiting[i+1:]...)
			r.admit() // the waiter may have blocked smaller ones behind it
			return
		}
	}
	if err := <-w.ready; err == nil { // it was admitted at the same moment
		r.count(-w.size)
		r.admit()
	}
}

// add changes the counts of pending and held bytes, and of those that await their write; the
// changes may be negative. It does not wait.
func (r *room) add(used, queued int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.used += used
	r.mu.queued += queued
	if used < 0 || queued < 0 {
		r.admit()
	}
}

func (r *room) admit() {
	n := 0
	for ; n < len(r.mu.waiting) && r.fits(r.mu.waiting[n].size); n++ {
		r.count(r.mu.waiting[n].size)
		r.mu.bypassed = 0
		r.mu.waiting[n].ready <- nil
	}
	r.drop(n)
	r.mu.waiting = slices.DeleteFunc(r.mu.waiting, func(w *roomWaiter) bool {
		if !r.bypasses(w.size) {
			return false
		}
		r.count(w.size)
		w.ready <- nil
		return true
	})
}

func (r *room) drop(n int) {
	if n > 0 {
		left := copy(r.mu.waiting, r.mu.waiting[n:])
		clear(r.mu.waiting[left:])
		r.mu.waiting = r.mu.waiting[:left]
	}
}

// refuse makes all present and later calls of take fail with err. nil admits callers again.
func (r *room) refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.refuse = err
	if err != nil {
		for _, w := range r.mu.waiting {
			w.ready <- err
		}
		r.drop(len(r.mu.waiting))
	}
}
