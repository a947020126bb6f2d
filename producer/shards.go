package producer

import (
	"container/heap"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// A shard that refuses records for its limits is slowed down by additive increase and
// multiplicative decrease of a rate. A unit costs its bytes, plus perRecord where it has a Kinesis
// record of its own, since a shard takes 1 MiB and 1,000 records a second (AWS, "PutRecords").
const (
	perRecord  = 1024
	firstRate  = 1 << 20          // cost a second after the first refusal
	leastRate  = 16 << 10         // the lowest rate, so that the shard never stops
	raise      = 64 << 10         // the increase of the rate in a second without a refusal
	fastEnough = 64 << 20         // from this rate on the shard is not slowed down any more
	cutFactor  = 0.7              // a refusal multiplies the rate by it,
	cutEvery   = time.Second / 10 // but not more often than this
	burst      = time.Second / 4  // the part of the rate that may be saved up
	calmAfter  = time.Minute      // after so long without a refusal the shard is not slowed down
	maxPaces   = 4096             // the most shards in shards.known
)

// shards limits the rate at which shards are written to. It is empty until the first refusal.
//
// The producer learns from the answers which shard a lane's records go to. A shard has one range of
// hash keys, so all hash keys between two that it was seen to hold are its own: its span. If a
// shard answers inside the span of another, the other one was split or merged, or the answer is
// late. The other one is then forgotten.
type shards struct {
	known  map[runnel.ShardID]*pace
	spans  []*pace // the shards with a span, in the order of the spans
	parked int     // the number of parked lanes
}

// pace limits the rate of one shard, by a bucket of tokens.
type pace struct {
	shard   runnel.ShardID
	spanned bool
	span    keyspace.Range

	rate    float64   // cost a second; 0: the shard is not slowed down
	tokens  float64   // the cost that may be sent now; not above 0: nothing
	filled  time.Time // when tokens were last added
	raised  time.Time // when rate was last raised
	refused time.Time // when it last refused a unit
	cut     time.Time // when rate was last cut
	waiting laneHeap  // by place: the parked lanes
}

// learn adds to a shard's span a hash key that the shard has stored. It returns the lanes that
// waited for shards which are now forgotten.
func (s *shards) learn(hash keyspace.Key, shard runnel.ShardID) (released []*lane) {
	if s.known == nil || shard == "" {
		return nil
	}
	p := s.pace(shard)
	if p == nil || p.spanned && p.span.Contains(hash) {
		return nil
	}
	span := keyspace.Range{Start: hash, End: hash}
	if p.spanned {
		s.remove(p)
		if p.span.Start.Less(span.Start) {
			span.Start = p.span.Start
		}
		if span.End.Less(p.span.End) {
			span.End = p.span.End
		}
	}
	from := s.search(span.Start)
	to := from
	for to < len(s.spans) && !span.End.Less(s.spans[to].span.Start) {
		to++
	}
	for _, stale := range s.spans[from:to] {
		delete(s.known, stale.shard)
		for stale.waiting.Len() > 0 {
			released = append(released, s.pop(stale))
		}
	}
	p.spanned, p.span = true, span
	s.spans = slices.Replace(s.spans, from, to, p)
	return released
}

// search returns the index of the first span that ends at the hash key or after it.
func (s *shards) search(hash keyspace.Key) int {
	i, _ := slices.BinarySearchFunc(s.spans, hash, func(p *pace, hash keyspace.Key) int {
		return p.span.End.Compare(hash)
	})
	return i
}

func (s *shards) remove(p *pace) {
	i := s.search(p.span.Start)
	s.spans = slices.Delete(s.spans, i, i+1)
}

// pace returns the pace of a shard, and makes it if necessary; nil if there are too many.
func (s *shards) pace(shard runnel.ShardID) *pace {
	if s.known == nil {
		s.known = map[runnel.ShardID]*pace{}
	}
	p := s.known[shard]
	if p == nil && len(s.known) < maxPaces {
		p = &pace{shard: shard, waiting: laneHeap{before: byPlace}}
		s.known[shard] = p
	}
	return p
}

// of returns the pace of a lane's shard, or nil if the shard is not known.
func (s *shards) of(l *lane) *pace {
	if len(s.spans) == 0 {
		return nil
	}
	hash := l.hashKey()
	if i := s.search(hash); i < len(s.spans) && s.spans[i].span.Contains(hash) {
		return s.spans[i]
	}
	return nil
}

// slow lowers the rate of a shard that has refused a lane's unit. shard is "" if the answer did not
// name it.
func (s *shards) slow(now time.Time, l *lane, shard runnel.ShardID) {
	p := s.of(l)
	if shard != "" {
		p = s.pace(shard)
	}
	if s.known == nil {
		s.known = map[runnel.ShardID]*pace{} // non-nil: learn from the answers from now on
	}
	if p == nil {
		return
	}
	if p.rate == 0 {
		p.rate, p.filled, p.cut = firstRate, now, now
		p.tokens = p.rate * burst.Seconds()
	} else if now.Sub(p.cut) >= cutEvery {
		p.rate, p.cut = max(p.rate*cutFactor, leastRate), now
		p.tokens = min(p.tokens, 0) // saved tokens would exceed the limit again
	}
	p.refused, p.raised = now, now
}

// fill adds the tokens for the time since the last fill, and raises the rate.
func (p *pace) fill(now time.Time) {
	p.tokens = min(p.tokens+p.rate*now.Sub(p.filled).Seconds(), p.rate*burst.Seconds())
	p.filled = now
	p.rate += raise * now.Sub(p.raised).Seconds()
	p.raised = now
	if now.Sub(p.refused) >= calmAfter || p.rate >= fastEnough {
		p.rate = 0
	}
}

// full returns the pace of a lane's shard if nothing may be sent to the shard now, and nil
// otherwise.
func (s *shards) full(now time.Time, l *lane) *pace {
	p := s.of(l)
	if p == nil || p.rate == 0 {
		return nil
	}
	if p.fill(now); p.rate == 0 || p.tokens > 0 {
		return nil
	}
	return p
}

// park keeps a lane until more may be sent to its shard.
func (s *shards) park(p *pace, l *lane) {
	l.state = parked
	heap.Push(&p.waiting, l)
	s.parked++
}

func (s *shards) pop(p *pace) *lane {
	s.parked--
	return heap.Pop(&p.waiting).(*lane)
}

// charge subtracts the cost of a lane's unit that is sent.
func (s *shards) charge(l *lane, cost int) {
	if p := s.of(l); p != nil && p.rate > 0 {
		p.tokens -= float64(cost)
	}
}

// unpark returns the parked lanes that may be sent now.
func (s *shards) unpark(now time.Time, cost func(*lane) int) (released []*lane) {
	if s.parked == 0 {
		return nil
	}
	for _, p := range s.spans {
		if p.waiting.Len() == 0 {
			continue
		}
		p.fill(now)
		for room := p.tokens; p.waiting.Len() > 0 && (room > 0 || p.rate == 0); {
			l := s.pop(p)
			if !l.empty() {
				room -= float64(cost(l))
			}
			released = append(released, l)
		}
	}
	return released
}

// learn notes that a shard has stored records of a lane.
func (c *core) learn(now time.Time, l *lane, shard runnel.ShardID) {
	if c.shards.known != nil {
		c.nextAll(now, c.shards.learn(l.hashKey(), shard))
	}
}

// slow notes that a lane's shard has refused its unit.
func (c *core) slow(now time.Time, l *lane, v verdict) {
	if v.shard != "" {
		c.shards.pace(v.shard)
		c.learn(now, l, v.shard)
	}
	c.shards.slow(now, l, v.shard)
}

// wake returns when a parked lane may be sent.
func (s *shards) wake() (at time.Time, ok bool) {
	if s.parked == 0 {
		return at, false
	}
	for _, p := range s.spans {
		if p.waiting.Len() == 0 {
			continue
		}
		wait := time.Millisecond
		if p.rate > 0 {
			wait += time.Duration(max(0, -p.tokens) / p.rate * float64(time.Second))
		}
		if due := p.filled.Add(wait); !ok || due.Before(at) {
			at, ok = due, true
		}
	}
	return at, ok
}
