package budget

import "time"

const (
	// recent is the time over which a connection's rate is measured. An average over all of its
	// time would be wrong for long: the system's buffers take megabytes at once, even if the client
	// reads nothing.
	recent = 2 * patience
	// markStep is the least time between two marks.
	markStep = recent / 8
)

// mark is the number of bytes that had been moved at a time. The time is that since Begin, without
// the waits for memory.
type mark struct {
	at    time.Duration
	moved int64
}

// progress counts the bytes that a connection moves. The zero value has none.
type progress struct {
	last  mark     // the last progress
	marks [10]mark // some before it, the newest first: they reach back for at least recent
}

// note notes the number of bytes moved so far.
func (p *progress) note(now mark) {
	if p.last.at-p.marks[0].at >= markStep || now.at-p.last.at >= markStep {
		copy(p.marks[1:], p.marks[:])
		p.marks[0] = p.last
	}
	p.last = now
}

// rate returns the bytes a second over the last time of recent. It is not ok if the connection has
// not had as much time.
func (p *progress) rate(now time.Duration) (rate float64, ok bool) {
	if now < recent {
		return 0, false
	}
	from := p.last
	for n := 0; from.at > now-recent && n < len(p.marks); n++ {
		from = p.marks[n]
	}
	return float64(p.last.moved-from.moved) / (now - from.at).Seconds(), true
}
