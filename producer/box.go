package producer

import (
	"math"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// box is a Kinesis record of units of several lanes, for one shard, or one that is an aggregate
// already, which goes as it is. It is made for one call: what fails of it is packed anew, each
// unit with its own number and records, in whatever company there is then. Of a unit's copies
// the filter takes the first that is valid, whichever box it came in.
type box struct {
	key   laneKey
	data  []byte
	lanes []*lane
	size  int // of data with the key, at most, until there is data
}

// boxed is what a record takes more in a box than in a unit of its own, at most: its keys may
// stand later in the tables, and a longer index makes its entry longer.
const boxed = 6

// lull is the wait of what failed together: so it comes back together.
type lull struct {
	setbacks int
	wait     time.Duration
}

// entries is how many Kinesis records a call carries.
func (made *call) entries() int {
	if made.boxes != nil {
		return len(made.boxes)
	}
	return len(made.lanes)
}

// launchBoxes is launch where units share Kinesis records. Each ready lane, the oldest head
// first, goes into the box of its shard, or a new one if that is full.
func (c *core) launchBoxes(now time.Time) *call {
	made := &call{probe: c.gate.active()}
	lanes, bytes := math.MaxInt, c.limits.bytes
	if made.probe {
		lanes = 1
	}
	open := map[runnel.ShardID]*box{}
	for c.ready.count > 0 {
		l := c.ready.peek()
		if c.divert(now, l) {
			continue
		}
		if doubt := min(l.unit.suspicion, 16); doubt > 0 {
			lanes = min(lanes, max(c.limits.records>>doubt, 1))
			bytes = min(bytes, c.limits.bytes>>doubt)
		}
		shard, _ := c.chart.predict(l.hashKey())
		into, size := open[shard], l.size()+boxed*max(l.unit.count, 1)
		as := l.asItIs()
		fresh := as || into == nil || into.size+size > c.limits.unit
		if n := len(made.lanes); n >= lanes || n > 0 && made.bytes+size > bytes ||
			fresh && len(made.boxes) >= c.limits.records {
			break
		}
		c.ready.pop()
		if fresh {
			into = &box{size: len(outerKey)}
			if made.boxes = append(made.boxes, into); !as {
				open[shard] = into
			}
		}
		if l.unit.first == nil {
			l = c.fold(now, l, min(c.limits.unit-into.size, bytes-made.bytes))
		}
		before := made.bytes
		c.board(now, made, l)
		made.bytes = before + l.size() + boxed*l.unit.count
		into.size += l.size() + boxed*l.unit.count
		into.lanes = append(into.lanes, l)
	}
	c.seal(made)
	return made
}

// asItIs reports whether the lane's head is an aggregate already.
func (l *lane) asItIs() bool { return l.head().aggregated }

// seal makes the bytes of a call's boxes.
func (c *core) seal(made *call) {
	made.lanes, made.counts, made.bytes = made.lanes[:0], made.counts[:0], 0
	for _, b := range made.boxes {
		first := b.lanes[0]
		b.key, b.data = first.key, first.unit.bytes()
		if first.unit.wrapped() {
			b.key = laneKey{outerKey, first.hashKey().String()}
			b.data = c.boxData(b)
		}
		made.lanes = append(made.lanes, b.lanes...)
		for _, l := range b.lanes {
			made.counts = append(made.counts, l.unit.count)
		}
		b.size = len(b.data) + len(b.key.partition)
		made.bytes += b.size
	}
}

// boxData is an aggregate of the units of a box, each with its identity on its first record.
func (c *core) boxData(b *box) []byte {
	c.encoder.Reset()
	for _, l := range b.lanes {
		c.tags = l.unit.id.AppendTo(c.tags[:0])
		for e := l.unit.first; e != nil; e = e.next {
			record := e.inside()
			if e == l.unit.first {
				record.Tags = c.tags
			}
			_ = c.encoder.Add(record) // it was in the unit's own aggregate
		}
	}
	return c.encoder.Seal(make([]byte, 0, c.encoder.Size()))
}

// landBoxes takes the outcome of a call of boxes.
func (c *core) landBoxes(now time.Time, landed *call, o outcome) {
	for i, b := range landed.boxes {
		v := o.of(i)
		if v.fate == stored && b.lanes[0].unit.wrapped() {
			v = c.judge(v, b.lanes[0].hashKey(), func(within keyspace.Range) bool {
				for _, l := range b.lanes {
					if !within.Contains(l.hashKey()) {
						return false
					}
				}
				return true
			})
		}
		c.lull = lull{}
		for _, l := range b.lanes {
			count := l.unit.count
			c.landUnit(now, l, v, o.each == nil, len(landed.lanes) == 1)
			v.sub += count
		}
	}
}
