package producer

import (
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
	needed bool // the packing is by shard

	ranges  map[runnel.ShardID]keyspace.Range // of all shards that were listed
	open    []shardmap.Shard                  // in the order of their ranges; empty: not known yet
	waiting lane                              // a queue: what was taken before they are known

	stale    bool // an answer was not as expected
	running  bool // the shell lists the shards
	failures int
	next     time.Time // when they may be listed again
	sure     time.Time // when the stream was last seen to be the one that they are of
}

// wanted reports whether the shards are to be listed.
func (m *chart) wanted() bool {
	return m.needed && !m.running && (m.stale || len(m.open) == 0)
}

// predict returns the open shard that a hash key belongs to, if they are known.
func (m *chart) predict(hash keyspace.Key) (shard runnel.ShardID, ok bool) {
	i, found := slices.BinarySearchFunc(m.open, hash, func(s shardmap.Shard, h keyspace.Key) int {
		return s.Range.Start.Compare(h)
	})
	if len(m.open) == 0 {
		return "", false
	}
	if !found {
		i-- // the first one starts at 0
	}
	return m.open[i].ID, true
}

// judgeIn returns the verdict on a stored Kinesis record by the range of its shard: void if one of
// its hash keys is outside. The first hash key is the Kinesis record's.
func (m *chart) judgeIn(v verdict, first keyspace.Key, inside func(keyspace.Range) bool) verdict {
	within, known := m.ranges[v.shard]
	if predicted, _ := m.predict(first); predicted != v.shard {
		m.stale = true
	}
	switch {
	case !known:
		return verdict{fate: unknown, err: errUnlisted}
	case !inside(within):
		return verdict{fate: void, err: errVoid}
	}
	return v
}

// distrust forgets the shards, so that nothing is packed until they are listed again. A stream that
// was deleted and made again has shards of the same names with other ranges, and then a void record
// is taken for a good one. That can be so after the stream was not found, after an outage (a server
// that keeps nothing was started again), and after a pause.
func (c *core) distrust() {
	m := &c.chart
	if len(m.open) == 0 {
		return
	}
	m.open, m.ranges, m.stale, m.next = nil, nil, false, time.Time{}
	c.packing.recharted()
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
	if !c.chart.wanted() || now.Before(c.chart.next) {
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
		m.next = now.Add(c.limits.backoff(c.limits.retryMax, c.random).After(m.failures))
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
	if m.open = open; !same {
		c.packing.recharted()
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
	for waiting := &c.chart.waiting; waiting.first != nil; {
		c.ledger.settleAlone(waiting.pop(), err, errRefusedForCaller)
	}
	for !c.packing.charted() && c.ready.count > 0 {
		l := c.ready.pop()
		for l.unit.first == nil && l.first != nil {
			c.ledger.settleAlone(l.pop(), err, errRefusedForCaller)
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
