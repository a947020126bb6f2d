// Package budget bounds the memory of request bodies and of answers, which slow connections hold
// for long.
//
// A client may announce a long body and send it slowly, or not at all. So a body gets memory as its
// bytes come, and not by its announced length. Bodies then wait for one another half-way, and could
// all wait for ever. Two rules prevent that:
//
//   - The oldest share that is not settled may use all of the budget. The others leave a reserve
//     free, which is enough for one body of the greatest length. So there is always a body that can
//     become whole, be served, and give its memory back.
//   - A slow connection makes room. For each share that has waited for a second, the slowest other
//     one is cut off, if it has moved less than 64 KiB a second of late. While there is enough
//     memory, a connection may be as slow as its owner permits.
//
// The first Free bytes of a body are not counted, so that small calls never wait for large ones.
// The number of connections bounds those.
package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// Free is the part of a body or an answer that needs no budget, in bytes.
	Free = 16 << 10
	// patience is the time for which a share waits until a slow one is cut off.
	patience = time.Second
	// slow is the rate in bytes a second below which a share may be cut off for another one.
	slow = 64 << 10
	// searchAfter is the least time between two searches for a slow share to make room for refused
	// ones. A flood of these would otherwise search all the time.
	searchAfter = 10 * time.Millisecond
	// mostShares is the greatest number of shares that are not settled. Over HTTP/2 each of them
	// may have 256 KiB in its stream's window, too.
	mostShares = 1024
)

// ErrCut is the error of a share that was cut off for others.
var ErrCut = errors.New("the connection was too slow while others waited for memory")

// ErrFull is the error of a share that came while too many others were under way.
var ErrFull = fmt.Errorf("more than %d large requests are under way", mostShares)

// ErrLate is the error of a share that has waited for Budget.MaxWait.
var ErrLate = errors.New("no memory became free in time")

// Budget is the memory of one server for one purpose. It is safe for concurrent use.
type Budget struct {
	// MaxWait is the time for which a share waits for memory; 0: for as long as it takes. Set it
	// before the first use.
	MaxWait time.Duration

	limit   int64
	reserve int64 // that only the oldest share may use

	mu   sync.Mutex
	full time.Time // when a share was last refused, and a slow one searched for it
	used int64
	open []*Share // those that are not settled, and have memory or wait for it: the oldest first
}

// New returns a budget of limit bytes. Shares that grow in steps need a reserve that a single one
// never exceeds.
func New(limit, reserve int64) *Budget {
	return &Budget{limit: limit, reserve: min(limit, reserve)}
}

// Cutter ends a connection's Read or Write that waits.
type Cutter interface{ Cut() }

// Share is the part of one body or answer. It belongs to one goroutine. A nil Share has no bound.
// A share that never grows takes no lock.
type Share struct {
	of      *Budget
	cut     Cutter
	entered bool // it has grown

	// The budget's lock guards these.
	held   int64
	wants  int64         // more, for which it waits; 0 if it does not
	upTo   int64         // more than wants, if there is as much
	got    chan struct{} // is closed when it gets that, or is cut off
	isCut  bool
	moves  progress
	begun  time.Time     // when the first byte could move; zero before
	waited time.Duration // of the time since
	since  time.Time     // when it began to wait
}

// Open makes s an empty share. The budget calls cut, from another goroutine and with its lock held,
// if the share is to be cut off. It does not call cut after Settle or Release.
func (b *Budget) Open(s *Share, cut Cutter) { *s = Share{of: b, cut: cut} }

// Used returns the memory of all shares, in bytes.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// IsLarge reports whether the share has ever had memory.
func (s *Share) IsLarge() bool { return s != nil && s.entered }

// Begin notes that the share's connection can read or write from now on. Before, it is not slow.
func (s *Share) Begin() {
	if s == nil {
		return
	}
	if s.entered {
		s.of.mu.Lock()
		defer s.of.mu.Unlock()
	}
	s.begun, s.waited, s.moves = time.Now(), 0, progress{}
}

// Moved notes the number of bytes that have been read or written.
func (s *Share) Moved(n int) {
	if s == nil {
		return
	}
	if s.entered {
		s.of.mu.Lock()
		defer s.of.mu.Unlock()
	}
	s.moves.note(mark{s.moving(), int64(n)})
}

// moving returns the time for which the connection could move bytes.
func (s *Share) moving() time.Duration {
	moving := time.Since(s.begun) - s.waited
	if s.wants > 0 {
		moving -= time.Since(s.since)
	}
	return moving
}

// Grow waits for n more bytes. Errors: ErrCut, ErrFull, ErrLate, or the context's.
func (s *Share) Grow(ctx context.Context, n int) error {
	_, err := s.GrowUpTo(ctx, n, n)
	return err
}

// GrowUpTo waits for at least least more bytes, and takes up to most, but no more than a quarter of
// the free ones. It returns the number. Errors: see Grow.
func (s *Share) GrowUpTo(ctx context.Context, least, most int) (got int, err error) {
	if s == nil || least <= 0 {
		return max(0, most), nil
	}
	b := s.of
	b.mu.Lock()
	s.entered = true
	if !slices.Contains(b.open, s) {
		if len(b.open) >= mostShares {
			if time.Since(b.full) >= searchAfter {
				b.cutSlowest()
				b.full = time.Now()
			}
			b.mu.Unlock()
			return 0, ErrFull
		}
		b.open = append(b.open, s)
	}
	before := s.held
	s.wants, s.upTo, s.got, s.since = int64(least), int64(most), make(chan struct{}), time.Now()
	b.serve()
	ready := s.got
	b.mu.Unlock()
	var late <-chan time.Time
	if b.MaxWait > 0 {
		timer := time.NewTimer(b.MaxWait)
		defer timer.Stop()
		late = timer.C
	}
	for {
		patient := time.NewTimer(patience)
		select {
		case <-ready:
			patient.Stop()
			b.mu.Lock()
			defer b.mu.Unlock()
			if s.isCut {
				return 0, ErrCut
			}
			return int(s.held - before), nil
		case <-ctx.Done():
			patient.Stop()
			return 0, context.Cause(ctx) // Release takes it out of the queue
		case <-late:
			patient.Stop()
			return 0, ErrLate // as above
		case <-patient.C:
			b.mu.Lock()
			b.cutSlowest()
			b.mu.Unlock()
		}
	}
}

// TryGrowUpTo is GrowUpTo without a wait. It is not ok if the share would have to wait.
func (s *Share) TryGrowUpTo(least, most int) (got int, ok bool) {
	if s == nil || least <= 0 {
		return max(0, most), true
	}
	b := s.of
	b.mu.Lock()
	defer b.mu.Unlock()
	free := b.limit - b.reserve - b.used
	waits := slices.ContainsFunc(b.open, func(other *Share) bool { return other.wants > 0 })
	if waits || int64(least) > free || len(b.open) >= mostShares {
		return 0, false
	}
	if s.entered = true; !slices.Contains(b.open, s) {
		b.open = append(b.open, s)
	}
	size := max(int64(least), min(int64(most), free/4))
	b.used += size
	s.held += size
	return int(size), true
}

// Claim makes the share n bytes large if that is within the budget, and reports whether it is. It
// does not wait. The first Free bytes need no budget.
func (s *Share) Claim(n int) (ok bool) {
	if s == nil || n <= Free && !s.entered {
		return true
	}
	b := s.of
	b.mu.Lock()
	defer b.mu.Unlock()
	more := int64(n) - s.held
	if more > 0 && b.used+more > b.limit && b.used > s.held {
		b.cutSlowest()
		return false
	}
	if s.entered = true; !slices.Contains(b.open, s) {
		b.open = append(b.open, s)
	}
	s.set(int64(n))
	return true
}

// Take makes the share n bytes large, also beyond the budget. It is for an answer that must not be
// refused, since it says what was done.
func (s *Share) Take(n int) {
	if s == nil || n <= Free && !s.entered {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.entered = true; !slices.Contains(s.of.open, s) {
		s.of.open = append(s.of.open, s)
	}
	s.set(int64(n))
}

// set makes the share n bytes large. The lock is held.
func (s *Share) set(n int64) {
	s.of.used += n - s.held
	s.held = n
	s.of.serve()
}

// Shrink gives memory back, down to n bytes.
func (s *Share) Shrink(n int) {
	if s == nil || !s.entered {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if left := int64(n); left < s.held {
		s.of.used -= s.held - left
		s.held = left
		s.of.serve()
	}
}

// IsCut reports whether the share was cut off.
func (s *Share) IsCut() bool {
	if s == nil || !s.entered {
		return false
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.isCut
}

// Settle notes that the share grows no more, and that its connection moves nothing for it. It is
// not cut off any more.
func (s *Share) Settle() {
	if s == nil || !s.entered {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.close()
}

// Release gives the share's memory back. It may be called again, and the share may grow again.
func (s *Share) Release() {
	if s == nil || !s.entered {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.used -= s.held
	s.held = 0
	s.begun, s.moves = time.Time{}, progress{}
	s.close()
}

// close takes the share out of those that are not settled. The lock is held.
func (s *Share) close() {
	s.wants = 0
	if n := slices.Index(s.of.open, s); n >= 0 {
		s.of.open = slices.Delete(s.of.open, n, n+1)
	}
	s.of.serve()
}

// serve gives memory to the shares that wait, the oldest first. The lock is held.
func (b *Budget) serve() {
	for n, s := range b.open {
		if s.wants == 0 {
			continue
		}
		limit := b.limit - b.reserve
		if n == 0 {
			limit = max(b.limit, s.held+s.wants) // alone, it may exceed the limit
		}
		free := limit - b.used
		if s.wants > free {
			if n > 0 {
				return // a younger one must not overtake it
			}
			continue
		}
		size := max(s.wants, min(s.upTo, free/4))
		b.used += size
		s.held += size
		s.endWait()
	}
}

// endWait lets a share go on. Its wait ends now, and not when its goroutine runs again: otherwise
// a quick share that has just got memory would look slow. The lock is held.
func (s *Share) endWait() {
	s.waited += time.Since(s.since)
	s.wants = 0
	close(s.got)
}

// cutSlowest cuts off the slowest share that is not settled, if it is slow. The lock is held.
func (b *Budget) cutSlowest() {
	var slowest *Share
	least := float64(slow)
	for _, s := range b.open {
		if s.isCut || s.begun.IsZero() {
			continue
		}
		if rate, ok := s.moves.rate(s.moving()); ok && rate < least {
			slowest, least = s, rate
		}
	}
	if slowest == nil {
		return
	}
	slowest.isCut = true
	if slowest.wants > 0 {
		slowest.endWait()
	}
	slowest.cut.Cut()
}
