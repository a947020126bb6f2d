package producer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/keyspace"
)

// chartEvery is the wait between two listings of the shards that answers ask for.
const chartEvery = time.Second

var (
	errUnlisted = errors.New("the shard that has stored the unit is not in the stream's list")
	errVoid     = errors.New("the unit was packed for a shard that has been split or merged")
	errNoTiling = errors.New("the open shards do not cover the key space once")
)

// chart is the shards that records are packed for. A unit whose records do not all belong to the
// shard that it is stored in is void: readers drop it as a whole. The chart may be out of date,
// so each answer is held against the range of the shard that it names, which never changes.
type chart struct {
	ranges  map[runnel.ShardID]keyspace.Range // of all shards that were listed
	open    []shardmap.Shard                  // in the order of their ranges; empty: not known yet
	waiting lane                              // a queue: what was taken before they are known

	stale    bool // an answer was not as expected
	running  bool // the shell lists the shards
	failures int
	next     time.Time // when they may be listed again
	sure     time.Time // when the stream was last seen to be the one that they are of
}

func (c *chart) wanted() bool { return !c.running && (c.stale || len(c.open) == 0) }

// predict returns the open shard that a hash key belongs to, if they are known.
func (c *chart) predict(hash keyspace.Key) (shard runnel.ShardID, ok bool) {
	i, found := slices.BinarySearchFunc(c.open, hash, func(s shardmap.Shard, h keyspace.Key) int {
		return s.Range.Start.Compare(h)
	})
	if len(c.open) == 0 {
		return "", false
	}
	if !found {
		i-- // the first one starts at 0
	}
	return c.open[i].ID, true
}

// queueOf returns the queue of the shard that a hash key belongs to, or nil if it is not there.
func (c *core) queueOf(hash keyspace.Key) *lane {
	shard, known := c.chart.predict(hash)
	if !known {
		return &c.chart.waiting
	}
	return c.lanes[laneKey{hash: string(shard)}]
}

// newQueue makes the queue of the shard that a hash key belongs to.
func (c *core) newQueue(hash keyspace.Key) *lane {
	shard, _ := c.chart.predict(hash)
	l := &lane{key: laneKey{hash: string(shard)}, queue: true}
	c.lanes[l.key] = l
	return l
}

// rejoin returns the queue of a record that was in a queue before.
func (c *core) rejoin(e *entry) *lane {
	if l := c.queueOf(e.hash); l != nil {
		return l
	}
	return c.newQueue(e.hash)
}

// judge decides whether a Kinesis record that is stored is void, by the range of its shard. first
// is the hash key of its first record, and inside reports whether all are in a range.
func (c *core) judge(v verdict, first keyspace.Key, inside func(keyspace.Range) bool) verdict {
	within, known := c.chart.ranges[v.shard]
	if predicted, _ := c.chart.predict(first); predicted != v.shard {
		c.chart.stale = true
	}
	switch {
	case !known:
		return verdict{fate: unknown, err: errUnlisted}
	case !inside(within):
		return verdict{fate: void, err: errVoid}
	}
	return v
}

// judgeUnit is that for a unit of records of many lanes.
func (c *core) judgeUnit(u *unit, v verdict) verdict {
	return c.judge(v, u.first.hash, func(within keyspace.Range) bool {
		for e := u.first; e != nil; e = e.next {
			if !within.Contains(e.hash) {
				return false
			}
		}
		return true
	})
}

// byShard reports whether records of many lanes share Kinesis records.
func (l *limits) byShard() bool { return l.packs || l.boxes }

// uncharted reports whether nothing can be packed yet.
func (c *core) uncharted() bool { return c.limits.boxes && len(c.chart.open) == 0 }

// distrust forgets the shards, so that nothing is packed until they are listed again. A stream that
// was deleted and made again has shards of the same names with other ranges, and then a void record
// is taken for a good one. That can be so after the stream was not found, after an outage (a server
// that keeps nothing was started again), and after a pause.
func (c *core) distrust() {
	m := &c.chart
	if !c.limits.byShard() || len(m.open) == 0 {
		return
	}
	m.open, m.ranges, m.stale, m.next = nil, nil, false, time.Time{}
	if c.limits.packs {
		c.redistribute()
	}
}

// mistrusts forgets the shards, and reports that, if no call was answered for so long that the
// stream may be another one.
func (c *core) mistrusts(now time.Time) bool {
	if c.calls > 0 || len(c.chart.open) == 0 ||
		now.Sub(c.chart.sure) <= c.limits.horizon/staleShare {
		return false
	}
	c.distrust()
	return true
}

// missing reports whether a call has found no stream.
func (o outcome) missing() bool {
	return o.each == nil && awserr.Kinesis.Of(o.all.err) == awserr.Missing
}

// listing reports whether the shards are to be listed now. Then running is set until the core
// has been told of that.
func (c *core) listing(now time.Time) bool {
	if !c.limits.byShard() || !c.chart.wanted() || now.Before(c.chart.next) {
		return false
	}
	c.chart.running = true
	return true
}

// take takes a list of all the stream's shards that are kept, or the error of it, and returns
// why it cannot go by it. With an error that would come again what waits for the first list is
// refused, as the puts would be.
func (c *core) take(now time.Time, shards []shardmap.Shard, err error) error {
	m := &c.chart
	var open []shardmap.Shard
	if err == nil {
		open, err = tiling(shards)
	}
	if err != nil {
		m.failures++
		m.next = now.Add(backoff(m.failures, c.limits.retryMin, c.limits.retryMax, c.random))
		if len(m.open) == 0 && isFinal(err) {
			c.refuseUnlisted(err)
		}
		return err
	}
	m.stale, m.failures, m.next, m.sure = false, 0, now.Add(chartEvery), now
	m.ranges = make(map[runnel.ShardID]keyspace.Range, len(shards))
	for _, s := range shards {
		m.ranges[s.ID] = s.Range
	}
	same := slices.EqualFunc(m.open, open, func(a, b shardmap.Shard) bool { return a.ID == b.ID })
	if m.open = open; !same && c.limits.packs {
		c.redistribute()
	}
	return nil
}

// refuseUnlisted takes that the caller may not list the shards, so that nothing can be packed.
func (c *core) refuseUnlisted(err error) {
	if c.limits.journal {
		c.halt(err)
		return
	}
	c.refuseWaiting(err)
}

// refuseWaiting refuses what waits for the first list, but for units of earlier runs.
func (c *core) refuseWaiting(err error) {
	for m := &c.chart; m.waiting.first != nil; {
		c.settleHead(&m.waiting, err, errRefusedForCaller)
	}
	for c.limits.boxes && c.ready.count > 0 {
		l := c.ready.pop()
		for l.unit.first == nil && l.first != nil {
			c.settleHead(l, err, errRefusedForCaller)
		}
		if l.unit.first != nil {
			c.holdUntil(l, c.chart.next, false)
			continue
		}
		l.state = idle
		delete(c.lanes, l.key)
	}
}

// tiling returns the open shards in the order of their ranges.
func tiling(shards []shardmap.Shard) ([]shardmap.Shard, error) {
	var open []shardmap.Shard
	for _, s := range shards {
		if s.Open() {
			open = append(open, s)
		}
	}
	slices.SortFunc(open, func(a, b shardmap.Shard) int {
		return a.Range.Start.Compare(b.Range.Start)
	})
	ranges := make([]keyspace.Range, 0, len(open))
	for _, s := range open {
		ranges = append(ranges, s.Range)
	}
	if err := keyspace.Tiles(ranges); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoTiling, err)
	}
	return open, nil
}

// redistribute gives all that waits to the queues of the shards that are open now. A queue that
// is left empty goes when its turn comes.
func (c *core) redistribute() {
	var all []*entry
	drain := func(l *lane) {
		for l.first != nil {
			all = append(all, l.pop())
		}
	}
	drain(&c.chart.waiting)
	for _, l := range c.lanes {
		drain(l)
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.number, b.number) })
	touched := map[*lane]bool{}
	for _, e := range all {
		l := c.rejoin(e)
		l.push(e)
		e.lane, touched[l] = l, true
	}
	for l := range touched {
		c.requeue(l)
	}
}
