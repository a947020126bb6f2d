package serverclock

import (
	"math"
	"slices"
)

const (
	// maxSpans bounds the memory of offsets: with 24 bytes each, a record fits into its slot.
	maxSpans = 128
	// sameOffset is the greatest difference of offsets within a span that was not merged, in ms. So
	// data may expire a minute late.
	sameOffset = 60_000
	// longestPast is how long a span is kept after its end, in ms: the longest retention period of
	// a stream, 365 days, and one more.
	longestPast = 366 * 24 * 3_600_000
)

// span is a stretch of elapsed time in which the offset, the stamp minus the elapsed time, was
// about the same. It ends where the next one begins.
type span struct {
	from        int64 // elapsed ms
	least, most int64 // the smallest and the greatest offset in it, ms
}

// joined returns a span from the beginning of one to the end of the next.
func (s span) joined(next span) span {
	return span{s.from, min(s.least, next.least), max(s.most, next.most)}
}

// past remembers which stamps were given at which elapsed times. It is immutable.
//
// Retention needs this: a record knows only its stamp, and its age is elapsed time. If one offset
// were used for all records, a step of the clock by a year would expire everything before it.
// All errors keep data longer: a span uses its smallest offset, and so do two that are merged.
type past struct{ spans []span }

// stamp returns the stamp that was given at an elapsed time, or an earlier one. No later span began
// with an earlier stamp: a suspension of the machine is in the span before, and the stamps wait for
// the file after it.
func (p *past) stamp(elapsed int64) int64 {
	if p == nil || len(p.spans) == 0 {
		return elapsed
	}
	after, _ := slices.BinarySearchFunc(p.spans, elapsed+1, func(s span, at int64) int {
		switch {
		case s.from < at:
			return -1
		case s.from > at:
			return 1
		}
		return 0
	})
	stamp := elapsed + p.spans[max(after-1, 0)].least
	for _, s := range p.spans[after:] {
		stamp = min(stamp, s.from+s.least)
	}
	return stamp
}

// with returns a past with another reading. apart begins a new span in any case.
func (p *past) with(elapsed, stamp int64, apart bool) *past {
	reading := span{elapsed, stamp - elapsed, stamp - elapsed}
	if p == nil || len(p.spans) == 0 {
		return &past{[]span{reading}}
	}
	last := p.spans[len(p.spans)-1]
	joined := last.joined(reading)
	switch {
	case apart || joined.most-joined.least > max(sameOffset, last.most-last.least):
		next := &past{append(slices.Clone(p.spans), reading)}
		next.shorten(elapsed)
		return next
	case joined == last:
		return p
	}
	next := &past{slices.Clone(p.spans)}
	next.spans[len(next.spans)-1] = joined
	return next
}

// shorten drops spans that ended too long ago to matter. While there are too many, it merges the
// two neighbours of which the offsets differ least.
func (p *past) shorten(now int64) {
	for len(p.spans) > 1 && p.spans[1].from < now-longestPast {
		p.spans = p.spans[1:]
	}
	for len(p.spans) > maxSpans {
		at, least := 0, int64(math.MaxInt64)
		for i := range len(p.spans) - 1 {
			joined := p.spans[i].joined(p.spans[i+1])
			if by := joined.most - joined.least; by < least {
				at, least = i, by
			}
		}
		p.spans[at] = p.spans[at].joined(p.spans[at+1])
		p.spans = slices.Delete(p.spans, at+1, at+2)
	}
}

// later returns a past in which all that came before an elapsed time is younger by some ms: the
// time to that moment was overrated.
func (p *past) later(before, by int64) *past {
	if p == nil {
		return nil
	}
	next := &past{slices.Clone(p.spans)}
	for i := range next.spans {
		if s := &next.spans[i]; s.from < before {
			s.from = min(s.from+by, before)
			s.least -= by
			s.most -= by
		}
	}
	return next
}
