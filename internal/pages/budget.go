package pages

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/internal/retry"
)

// Budget paces the GetRecords calls of one shard. The cursors of a process that read the same shard
// share one: the server counts their calls together. It is safe for concurrent use.
//
// The server counts a call at an unknown moment between its sending and its answer. Calls that are
// sent at an even distance of 200 ms can reach it closer together, and then a sixth one falls into
// a second that allows five. So, for n calls a second, a call is sent no earlier than a second
// after the answer to the n-th call before it. No second of the server then has more than n of
// these calls, wherever the second begins and however the network's delays vary.
//
// Besides, the calls keep about the same distance, which gives records the lowest latency. It
// varies a little: a reader that used up the limit to the millisecond would leave no call to a
// second reader, and so would never meet the throttle by which it learns of that one.
//
// Bytes are paid for later: the next call is sent when the bytes of the last answer are paid at the
// limit's rate, and when the answers of the last second have less than the limit. A call asks for
// no more records than are paid in a part of a second, since a larger answer would close the shard
// to its other readers for longer.
//
// The other readers of a shard share its limits, and a throttle is the only sign of them. The rate
// falls at a throttle and grows back; rate.go describes how. A run of throttles without an answer
// between them is one sign: AWS refuses every call for five seconds after an answer of 10 MiB. Its
// calls come at growing distances, and the rate falls once.
type Budget struct {
	limits Limits
	made   time.Time
	random *rand.Rand // nil: the process's; a test has its own

	mu struct {
		sync.Mutex
		rate  rate
		run   int       // throttles since the last answer
		fell  bool      // the rate fell at one of them
		after time.Time // no call before: the wait after a throttle

		sent   time.Time // when the last call was sent
		jitter float64   // of the distance from it to the next call
		recent []taken   // a ring of the last calls
		place  int       // of the next call, in recent
		paid   time.Time // when the bytes of the last answer are paid
		size   float64   // bytes of a record: an estimate

		stats Stats
	}
}

// taken is a call that a budget remembers.
type taken struct {
	at    time.Time // when it was sent, and then when it was answered
	bytes int       // of the answer
}

// Stats are the totals of the reading of a shard.
type Stats struct {
	Calls     uint64 // of GetRecords
	Throttled uint64 // those that were refused for coming too soon
	Bytes     uint64 // data and partition keys of the records that came
}

const (
	mostRecent  = 32       // calls that a budget remembers
	firstSize   = 10 << 10 // bytes: the first estimate of a record's size
	answerPart  = 0.4      // of a second: the time in which an answer's bytes are paid
	bytesMargin = 0.97     // of the limit of bytes, for the delays of the network
	unevenness  = 0.1      // the part of the distance between two calls that is added at random
)

// The waits in a run of throttles.
const (
	firstWait = 200 * time.Millisecond
	lastWait  = 2 * time.Second
)

// NewBudget makes a budget.
func NewBudget(limits Limits) *Budget {
	b := &Budget{limits: limits, made: time.Now()}
	b.mu.rate = newRate(limits.Calls)
	b.mu.size, b.mu.jitter = firstSize, 1
	if limits.Calls > 0 {
		b.mu.recent = make([]taken, max(1, int(min(limits.Calls, mostRecent))))
	}
	return b
}

// Stats returns the totals so far.
func (b *Budget) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.stats
}

// Used returns the time of the last call, or that at which the budget was made.
func (b *Budget) Used() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return later(b.made, b.mu.sent)
}

// wait returns the wait before the next call.
func (b *Budget) wait(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.untilDue(now)
}

func (b *Budget) untilDue(now time.Time) time.Duration {
	due := b.mu.after
	if !b.mu.sent.IsZero() {
		due = later(due, b.mu.sent.Add(seconds(b.mu.jitter/b.mu.rate.at(now))))
	}
	due = later(due, b.mu.paid)
	n, bytes := len(b.mu.recent), 0
	for i := range n { // from the last call back
		old := b.mu.recent[(b.mu.place-1-i+n)%n]
		if old.at.IsZero() {
			break
		}
		if i == n-1 {
			due = later(due, old.at.Add(seconds(float64(n)/b.limits.Calls)))
		}
		if bytes += old.bytes; b.limits.Bytes > 0 && float64(bytes) >= b.limits.Bytes {
			due = later(due, old.at.Add(time.Second))
			break
		}
	}
	return max(0, due.Sub(now))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// longest is the longest wait: a float64 of seconds can exceed a time.Duration.
const longest = 100 * 365 * 24 * time.Hour

func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), float64(longest)))
}

// distance returns the least time between two calls.
func (b *Budget) distance(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.rate.distance(now)
}

// call is one call that a budget counts.
type call struct {
	sent  time.Time
	place int // in recent
}

// take counts a call if one is due. Otherwise it returns the wait.
func (b *Budget) take(now time.Time) (call, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait := b.untilDue(now); wait > 0 {
		return call{}, wait
	}
	b.mu.stats.Calls++
	c := call{sent: now, place: b.mu.place}
	if n := len(b.mu.recent); n > 0 {
		b.mu.recent[b.mu.place] = taken{at: now}
		b.mu.place = (b.mu.place + 1) % n
	}
	if b.mu.sent.IsZero() {
		b.mu.rate.begin(now)
	}
	b.mu.sent, b.mu.jitter = now, 1+unevenness*b.draw()
	return c, 0
}

// ask returns the number of records that a call asks for, at most most.
func (b *Budget) ask(most int) int {
	if b.limits.Bytes == 0 {
		return most
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(1, min(most, int(answerPart*b.limits.Bytes/b.mu.size)))
}

// answer notes the records that a call brought, and their bytes.
func (b *Budget) answer(c call, now time.Time, records, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen(c, now, bytes)
	b.mu.run, b.mu.fell = 0, false
	b.mu.rate.answer(now)
	b.mu.stats.Bytes += uint64(bytes)
	if b.limits.Bytes > 0 {
		rate := bytesMargin * b.limits.Bytes * b.mu.rate.part(now)
		b.mu.paid = later(b.mu.paid, c.sent).Add(seconds(float64(bytes) / rate))
	}
	if records > 0 {
		mean := math.Max(1, float64(bytes)/float64(records))
		b.mu.size = max(mean, (b.mu.size+mean)/2)
	}
}

// refuse notes that a call was throttled.
func (b *Budget) refuse(c call, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen(c, now, 0)
	b.mu.stats.Throttled++
	if b.mu.run++; !b.mu.fell {
		b.mu.fell = b.mu.rate.refuse(now, b.draw())
	}
	wait := retry.Backoff{Min: firstWait, Max: lastWait, Random: b.random}
	b.mu.after = now.Add(wait.After(b.mu.run))
}

// fail notes that a call had neither records nor a throttle.
func (b *Budget) fail(c call, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen(c, now, 0)
}

// seen notes that the server counted a call, and the bytes of its answer, by now.
func (b *Budget) seen(c call, now time.Time, bytes int) {
	if c.place < len(b.mu.recent) && b.mu.recent[c.place].at.Equal(c.sent) {
		b.mu.recent[c.place] = taken{now, bytes}
	}
}

// draw returns a random number in [0, 1).
func (b *Budget) draw() float64 {
	if b.random != nil {
		return b.random.Float64()
	}
	return rand.Float64()
}
