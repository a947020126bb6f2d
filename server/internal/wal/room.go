package wal

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
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
// large ones that wait. While the log is too long, paced callers wait; others do not wait behind
// them.
type room struct {
	max    int64
	queued atomic.Int64 // bytes that await their write and sync; written under mu
	mu     struct {
		sync.Mutex
		used     int64 // pending and held
		bypassed int64 // of small callers, since a caller was last admitted in its turn
		waiting  []*roomWaiter
		refuse   error // why the room admits no caller; nil if it does

		landed LSN           // the end of the log without the queued bytes
		most   LSN           // the end beyond which paced callers wait; 0: none
		paced  []*roomWaiter // that wait for it, the oldest first
		slowed int64         // waits for it since the start
		rushes int           // while there are any, none waits
	}
}

type roomWaiter struct {
	size  int64
	paced bool
	ready chan error
}

// take waits until size bytes fit, and counts them. A caller with more bytes than the whole room
// is admitted alone. A paced one also waits while the log is too long.
func (r *room) take(ctx context.Context, size int64, paced bool) error {
	r.mu.Lock()
	tooLong := paced && (len(r.mu.paced) > 0 || r.beyond(size))
	switch {
	case r.mu.refuse != nil:
		defer r.mu.Unlock()
		return r.mu.refuse
	case tooLong:
	case len(r.mu.waiting) == 0 && r.fits(size), r.bypasses(size):
		r.count(size)
		r.mu.Unlock()
		return nil
	}
	w := &roomWaiter{size: size, paced: paced, ready: make(chan error, 1)}
	if tooLong {
		r.slow(w)
	} else {
		r.mu.waiting = append(r.mu.waiting, w)
	}
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
	r.queued.Add(size)
}

// fits reports whether a caller has room in its turn.
func (r *room) fits(size int64) bool {
	queue := r.max / queuedPart
	if size > r.max/largePart {
		queue = r.max / largeQueuedPart
	}
	return (r.mu.used <= 0 || r.mu.used+size <= r.max) &&
		(r.queued.Load() <= 0 || r.queued.Load()+size <= queue || size <= r.max/smallPart)
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

// beyond reports whether size bytes more make the log too long for a paced caller.
func (r *room) beyond(size int64) bool {
	return r.mu.most > 0 && r.mu.rushes == 0 && r.mu.landed+LSN(r.queued.Load()+size) > r.mu.most
}

// slow makes a paced caller wait until the log is short enough.
func (r *room) slow(w *roomWaiter) {
	r.mu.paced = append(r.mu.paced, w)
	r.mu.slowed++
}

// pace sets the LSN beyond which paced callers make no frame.
func (r *room) pace(most LSN) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.most = most
	r.admit()
}

// unpace lets paced callers go on as all others do.
func (r *room) unpace() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.most = 0
	r.hasten()
}

// slowed returns the number of waits of paced callers since the start.
func (r *room) slowed() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.slowed
}

// rush changes the number of rushes by one.
func (r *room) rush(by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.rushes += by; r.mu.rushes > 0 {
		r.hasten()
	}
}

// hasten lets paced callers wait for their turn alone.
func (r *room) hasten() {
	r.mu.waiting = append(r.mu.waiting, r.mu.paced...)
	r.mu.paced = nil
	r.admit()
}

// leave removes a waiter that gave up.
func (r *room) leave(w *roomWaiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range []*[]*roomWaiter{&r.mu.waiting, &r.mu.paced} {
		if i := slices.Index(*list, w); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
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
	r.queued.Add(queued)
	if used < 0 || queued < 0 {
		r.admit()
	}
}

// land sets the new end of the log, and frees the room of size bytes that have landed.
func (r *room) land(end LSN, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.landed = end
	r.mu.used -= size
	r.queued.Add(-size)
	r.admit()
}

func (r *room) admit() {
	n := 0
	for ; n < len(r.mu.waiting); n++ {
		w := r.mu.waiting[n]
		if w.paced && r.beyond(w.size) { // the log has grown since the caller came
			r.slow(w)
			continue
		}
		if !r.fits(w.size) {
			break
		}
		r.enter(w)
		r.mu.bypassed = 0
	}
	r.mu.waiting = slices.Delete(r.mu.waiting, 0, n)
	n = 0
	for ; n < len(r.mu.paced) && len(r.mu.waiting) == 0; n++ {
		w := r.mu.paced[n]
		if r.beyond(w.size) || !r.fits(w.size) {
			break
		}
		r.enter(w)
	}
	r.mu.paced = slices.Delete(r.mu.paced, 0, n)
	r.mu.waiting = slices.DeleteFunc(r.mu.waiting, func(w *roomWaiter) bool {
		if w.paced && r.beyond(w.size) || !r.bypasses(w.size) {
			return false
		}
		r.enter(w)
		return true
	})
}

// enter admits a waiter.
func (r *room) enter(w *roomWaiter) {
	r.count(w.size)
	w.ready <- nil
}

// refuse makes all present and later calls of take fail with err. nil admits callers again.
func (r *room) refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.refuse = err
	if err != nil {
		for _, w := range slices.Concat(r.mu.waiting, r.mu.paced) {
			w.ready <- err
		}
		r.mu.waiting, r.mu.paced = nil, nil
	}
}
