// Package intake bounds the memory of request bodies.
//
// A client may announce a long body and send it slowly, or not at all. So a body gets memory as its
// bytes come, and not by its announced length. Bodies then wait for one another half-way, and could
// all wait for ever. Two rules prevent that:
//
//   - The oldest body that is not whole may use all of the memory. The others leave enough of it
//     free for one body of the greatest length. So there is always a body that can become whole, be
//     served, and give its memory back.
//   - A body that is slow makes room. If another one has waited for a second, the slowest body of
//     less than 1 MiB a second is cut off. While there is enough memory, any body may be as slow as
//     its reader permits.
//
// The first Free bytes of a body are not counted, so that small calls never wait for large ones.
// What bounds those is the number of connections.
package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// Free is the part of a body that needs no memory of an Intake, in bytes.
	Free = 16 << 10
	// patience is the time for which a body waits until a slow one is cut off.
	patience = time.Second
	// slow is the rate in bytes a second below which a body may be cut off for another one.
	slow = 1 << 20
	// mostBodies is the greatest number of bodies that are not whole.
	mostBodies = 4096
)

// ErrCut is the error of a body that was cut off for others.
var ErrCut = errors.New("the body came too slowly while others waited for memory")

// ErrFull is the error of a body that came while too many others were under way.
var ErrFull = fmt.Errorf("more than %d request bodies are under way", mostBodies)

// Intake is the memory of the bodies of one server. It is safe for concurrent use.
type Intake struct {
	limit   int64
	reserve int64 // that only the oldest body may use

	mu   sync.Mutex
	used int64
	open []*Body // those that are not whole, and have memory or wait for it: the oldest first
}

// New returns the memory for bodies of at most longest bytes. limit is for all of them; a single
// body may exceed it.
func New(limit, longest int64) *Intake {
	return &Intake{limit: limit, reserve: min(limit, 2*longest)} // packed, and unpacked
}

// Body is the memory of one body. It belongs to one goroutine. A nil Body has memory without a
// bound.
type Body struct {
	of  *Intake
	cut func()

	// The Intake's lock guards these.
	held   int64
	wants  int64         // more, for which it waits; 0 if it does not
	got    chan struct{} // is closed when it gets that, or is cut off
	isCut  bool
	begun  time.Time     // of its reading
	waited time.Duration // of that time
	since  time.Time     // when it began to wait
}

// Begin returns the memory of a body whose reading begins now. The Intake calls cut, from another
// goroutine and with its lock held, if the body is to be cut off: cut must end a Read that waits.
// It does not call cut after Whole or Release.
func (i *Intake) Begin(cut func()) *Body {
	return &Body{of: i, cut: cut, begun: time.Now()}
}

// Used returns the memory of all bodies, in bytes.
func (i *Intake) Used() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.used
}

// Grow waits for n more bytes. Errors: ErrCut, ErrFull, or the context's.
func (b *Body) Grow(ctx context.Context, n int) error {
	if b == nil {
		return nil
	}
	i := b.of
	i.mu.Lock()
	if !slices.Contains(i.open, b) {
		if len(i.open) >= mostBodies {
			i.mu.Unlock()
			i.cutSlowest()
			return ErrFull
		}
		i.open = append(i.open, b)
	}
	b.wants, b.got, b.since = int64(n), make(chan struct{}), time.Now()
	i.serve()
	got := b.got
	i.mu.Unlock()
	for {
		patient := time.NewTimer(patience)
		select {
		case <-got:
			patient.Stop()
			i.mu.Lock()
			defer i.mu.Unlock()
			b.waited += time.Since(b.since)
			if b.isCut {
				return ErrCut
			}
			return nil
		case <-ctx.Done():
			patient.Stop()
			return context.Cause(ctx) // Release takes it out of the queue
		case <-patient.C:
			i.cutSlowest()
		}
	}
}

// IsCut reports whether the body was cut off.
func (b *Body) IsCut() bool {
	if b == nil {
		return false
	}
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	return b.isCut
}

// Whole notes that the body has been read. It is not cut off any more.
func (b *Body) Whole() {
	if b == nil {
		return
	}
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.close()
}

// Release gives the body's memory back. It may be called again.
func (b *Body) Release() {
	if b == nil {
		return
	}
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.of.used -= b.held
	b.held = 0
	b.close()
}

// close takes the body out of those that are not whole. The lock is held.
func (b *Body) close() {
	b.wants = 0
	if n := slices.Index(b.of.open, b); n >= 0 {
		b.of.open = slices.Delete(b.of.open, n, n+1)
	}
	b.of.serve()
}

// serve gives memory to the bodies that wait, the oldest first. The lock is held.
func (i *Intake) serve() {
	for n, b := range i.open {
		if b.wants == 0 {
			continue
		}
		limit := i.limit - i.reserve
		if n == 0 {
			limit = max(i.limit, b.held+b.wants) // alone, it may exceed the limit
		}
		if i.used+b.wants > limit {
			if n > 0 {
				return // a younger one must not overtake it
			}
			continue
		}
		i.used += b.wants
		b.held += b.wants
		b.wants = 0
		close(b.got)
	}
}

// cutSlowest cuts off the slowest body that is not whole, if it is slow.
func (i *Intake) cutSlowest() {
	i.mu.Lock()
	defer i.mu.Unlock()
	var slowest *Body
	least := float64(slow)
	for _, b := range i.open {
		reading := time.Since(b.begun) - b.waited
		if b.wants > 0 {
			reading -= time.Since(b.since)
		}
		if rate := float64(b.held+Free) / reading.Seconds(); !b.isCut && reading > patience && rate < least {
			slowest, least = b, rate
		}
	}
	if slowest == nil {
		return
	}
	slowest.isCut = true
	if slowest.wants > 0 {
		slowest.wants = 0
		close(slowest.got)
	}
	slowest.cut()
}
