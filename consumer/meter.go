package consumer

import (
	"math"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// meter measures the reading of one held shard. It is safe for concurrent use, and calls nothing
// under its lock: Status may be called from everywhere.
type meter struct {
	mu                   sync.Mutex
	began                time.Time // of the reading; zero while the shard waits for its parents
	position, checkpoint runnel.Position
	saved                time.Time // when the row got the checkpoint
	records, bytes       int64
	throttles            int64
	last                 sight    // of the last page up to which all pages were settled
	taken                []*sight // of the pages after it, in order
}

// sight is how far the end of a page was behind the tip when the page was read.
type sight struct {
	behind  time.Duration
	at      time.Time
	settled bool
}

// hold notes the lease as the worker took it.
func (m *meter) hold(taken lease.Lease, at instant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.position, m.saved = taken.Processed(), at.Time
	m.checkpoint = m.position
	m.last.at = at.Time
	if s := taken.Stats; !s.At.IsZero() {
		m.last.behind = s.Behind + max(0, at.wall.Sub(s.At)) // until the first page says more
	}
}

// begin notes that the reading can begin: the shard no longer waits for its parents.
func (m *meter) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began = time.Now()
	m.last.at = m.began
}

// take notes a page that the shard's form is about to take.
func (m *meter) take(p *page) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.sight = &sight{behind: p.behind, at: p.at} // it does not keep the page's memory
	m.taken = append(m.taken, p.sight)
}

// settle notes that a page's records have been processed. A Record handler may finish a later page
// first, which then does not count yet.
func (m *meter) settle(p *page) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.sight.settled = true
	for len(m.taken) > 0 && m.taken[0].settled {
		m.last = *m.taken[0]
		m.taken = m.taken[1:]
	}
}

// observe notes an event of the shard.
func (m *meter) observe(e *Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e.Kind {
	case EventShardStarted:
		m.position, m.taken = e.Position, nil // pages that an earlier session took are dropped
	case EventSought:
		m.position, m.taken, m.last = e.Position, nil, sight{at: time.Now()}
	case EventCommitted, EventMoved:
		m.position = e.Position
	case EventCheckpointed:
		m.checkpoint, m.saved = e.Position, time.Now()
	case EventDelivered:
		m.records += int64(e.Records)
		m.bytes += e.Bytes
	default:
	}
}

func (m *meter) throttled() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.throttles++
}

// behind returns the distance of the shard's reading from the tip. The server reports it with each
// read. The age of a read that is older than fresh is added, so a handler that does not return, a
// pause and an outage show in it, too. It is 0 while the shard waits for its parents.
func (m *meter) behind(now time.Time, fresh time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.began.IsZero() {
		return 0
	}
	behind := m.last.behind
	if age := now.Sub(m.last.at); age > fresh {
		behind += age
	}
	return behind
}

// freshFor is how long an answer says how far the reading is behind: an idle shard is read once in
// PollInterval.
func (c *Config) freshFor() time.Duration { return 2*c.PollInterval + 2*time.Second }

// busy measures the time in which at least one handler of a worker runs. It is safe for concurrent
// use.
type busy struct {
	mu      sync.Mutex
	running int
	since   time.Time     // when the first of the running ones began
	before  time.Duration // until then
}

func (b *busy) begin() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running++; b.running == 1 {
		b.since = time.Now()
	}
}

func (b *busy) end() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running--; b.running == 0 {
		b.before += time.Since(b.since)
	}
}

func (b *busy) spent() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running == 0 {
		return b.before
	}
	return b.before + time.Since(b.since)
}

// measured returns the measurements of a holder that has processed these bytes since the write
// before. of is the row as it was written then, and beat the time between two heartbeats. The KCL's
// throughput forgets half in one beat. Ours forget half in four, since a handler may take longer
// than a beat for a batch.
func measured(
	of lease.Lease, now lease.Stats, bytes int64, since, beat time.Duration,
) (lease.Stats, float64) {
	before, rate := of.Stats, float64(bytes)/since.Seconds()
	now.Rate, now.Ingest = int64(rate), ingest(before, now, bytes, beat)
	kbps := rate / 1024
	if !before.At.IsZero() {
		now.Rate = int64(moved(float64(before.Rate), rate, since, 4*beat))
		now.Busy = moved(before.Busy, now.Busy, since, 4*beat)
		kbps = moved(of.ThroughputKBps, kbps, since, beat)
	}
	return now, kbps
}

// ingest returns the bytes a second that arrived in the shard at the position. Since the write
// before, the position has moved through the stream's time: by the time that has passed, less the
// growth of the distance to the tip. The bytes had arrived in that time.
func ingest(before, now lease.Stats, bytes int64, beat time.Duration) int64 {
	switch {
	case before.At.IsZero() && now.Behind == 0:
		return now.Rate // the shard is at the tip
	case before.At.IsZero():
		return 0 // the next write knows it
	}
	arrived := now.At.Sub(before.At) - (now.Behind - before.Behind)
	if arrived < beat/20 {
		return before.Ingest
	}
	rate := float64(bytes) / arrived.Seconds()
	if before.Ingest == 0 && before.Behind > 0 {
		return int64(rate) // it was not known
	}
	return int64(moved(float64(before.Ingest), rate, arrived, 4*beat))
}

// moved returns a moving average after a time with this value. Its memory halves in the time half.
func moved(average, value float64, during, half time.Duration) float64 {
	return value + (average-value)*math.Exp2(-during.Seconds()/half.Seconds())
}
