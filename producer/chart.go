package producer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/keyspace"
)

// chartEvery is the least time between two listings of the shards that answers make necessary.
const chartEvery = time.Second

var (
	errUnlisted = errors.New("the shard that has stored the unit is not in the stream's list")
	errVoid     = errors.New("the unit was packed for a shard that has been split or merged")
	errNoTiling = errors.New("the open shards do not cover the key space once")
)

// chart is the list of the shards for which records are packed. A unit with a hash key outside the
// range of the shard that stores it is void: readers drop it as a whole. The chart may be out of
// date. So each answer is compared with the range of the shard that it names, and that range never
// changes.
type chart struct {
	needed bool // the packing is by shard

	ranges  map[runnel.ShardID]keyspace.Range // of all listed shards, open and closed
	open    []runnel.Shard                    // in the order of their ranges; empty: not known
	waiting lane                              // a queue: records of OrderNone until open is known

	stale     bool      // an answer named another shard than expected
	running   bool      // a listing is under way
	failures  int       // listings that failed in a row
	next      time.Time // when the shards may be listed again
	confirmed time.Time // the last answer from the stream to which the list belongs
}

// wanted reports whether the shards need to be listed.
func (m *chart) wanted() bool {
	return m.needed && !m.running && (m.stale || len(m.open) == 0)
}

// predict returns the open shard of a hash key, if the shards are known.
func (m *chart) predict(hash keyspace.Key) (shard runnel.ShardID, ok bool) {
	i, found := slices.BinarySearchFunc(m.open, hash, func(s runnel.Shard, h keyspace.Key) int {
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

// judgeIn returns the verdict on a stored Kinesis record: void if one of its hash keys is outside
// the range of its shard, which `inside` checks. first is the hash key of the Kinesis record
// itself.
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

// forgetShards forgets the shards, so that nothing is packed until they are listed again. A stream
// that was deleted and created again has shards with the same names and other ranges, so the check
// of an answer could take a void record for a valid one. That is possible after the stream was not
// found, after an outage (an in-memory server may have been restarted), and after a pause.
func (c *core) forgetShards() {
	m := &c.chart
	if len(m.open) == 0 {
		return
	}
	m.open, m.ranges, m.stale, m.next = nil, nil, false, time.Time{}
	c.packing.recharted()
}

// forgetOldShards forgets the shards and returns true if the last answer is so old that the stream
// may be another one.
func (c *core) forgetOldShards(now time.Time) bool {
	if c.calls > 0 || len(c.chart.open) == 0 ||
		now.Sub(c.chart.confirmed) <= c.limits.horizon/staleShare {
		return false
	}
	c.forgetShards()
	return true
}

// missing reports whether the stream was not found.
func (o outcome) missing() bool {
	return o.each == nil && awserr.Kinesis.Of(o.all.err) == awserr.Missing
}

// listing reports whether the shell must list the shards now. It sets running, which the shell
// clears after the listing.
func (c *core) listing(now time.Time) bool {
	if !c.chart.wanted() || now.Before(c.chart.next) {
		return false
	}
	c.chart.running = true
	return true
}

// takeShards takes the result of a listing: all shards of the stream that have not expired, or an
// error. It returns the reason if the list cannot be used. If that is a refusal of the caller, the
// records that wait for the first list are refused, as their puts would be.
func (c *core) takeShards(now time.Time, shards []runnel.Shard, err error) error {
	m := &c.chart
	var open []runnel.Shard
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
	m.stale, m.failures, m.next, m.confirmed = false, 0, now.Add(chartEvery), now
	m.ranges = make(map[runnel.ShardID]keyspace.Range, len(shards))
	for _, s := range shards {
		m.ranges[s.ID] = s.Range
	}
	same := slices.EqualFunc(m.open, open, func(a, b runnel.Shard) bool { return a.ID == b.ID })
	if m.open = open; !same {
		c.packing.recharted()
	}
	return nil
}

// refuseUnlisted handles a caller without the right to list the shards, so that nothing can be
// packed.
func (c *core) refuseUnlisted(err error) {
	if c.limits.journal {
		c.halt(err)
		return
	}
	c.refuseWaiting(err)
}

// refuseWaiting refuses the records that wait for the first list. Units of earlier runs go on
// waiting.
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

// tiling returns the open shards in the order of their ranges, or an error if they do not cover the
// key space exactly once.
func tiling(shards []runnel.Shard) ([]runnel.Shard, error) {
	var open []runnel.Shard
	for _, s := range shards {
		if s.Open() {
			open = append(open, s)
		}
	}
	slices.SortFunc(open, func(a, b runnel.Shard) int {
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
