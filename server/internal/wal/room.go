package wal

import (
	"context"
	"sync"
)

// room limits the pending bytes. It admits callers first come, first served.
type room struct {
	max int64
	mu  struct {
		sync.Mutex
		used    int64
		waiting []*roomWaiter
		refuse  error // why the room admits no caller; nil if it does
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
	case len(r.mu.waiting) == 0 && r.fits(size):
		r.mu.used += size
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

func (r *room) fits(size int64) bool { return r.mu.used <= 0 || r.mu.used+size <= r.max }

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
		r.mu.used -= w.size
		r.admit()
	}
}

// add changes the count by size bytes, which may be negative. It does not wait.
func (r *room) add(size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.used += size
	if size < 0 {
		r.admit()
	}
}

func (r *room) admit() {
	n := 0
	for ; n < len(r.mu.waiting) && r.fits(r.mu.waiting[n].size); n++ {
		r.mu.used += r.mu.waiting[n].size
		r.mu.waiting[n].ready <- nil
	}
	r.drop(n)
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
