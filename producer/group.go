package producer

import (
	"container/heap"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// A run's lanes are in groups: each has a range of the key space, the first bits of its hash
// keys, and numbers, a LOW and a window of its own. A unit that gets no end stops LOW, and with
// a window full of newer units nothing more of its group can be frozen. With one LOW for all
// lanes that was everything; so it is a 16th of the key space.
//
// Ranges of equal size, since those of the shards change: a reshard would move lanes whose units
// are open, or were given up and may still come. A lane that changed its LOW could be sent again
// what a filter has forgotten. A group never changes, and a shard's lanes are of few groups: of
// two, where the stream has eight equal shards. Shards that have a group in common share its
// window.
const (
	groupBits = 4
	groups    = 1 << groupBits

	// groupWindow is how far a number may lie above the lowest of its group that is not
	// settled. All groups together have the window that the format allows one producer.
	groupWindow = aggregate.Window / groups
)

// groupOf returns the number of the group of a hash key.
func groupOf(hash keyspace.Key) int { return int(hash.Hi >> (64 - groupBits)) }

// group is the state that the lanes of a group share.
type group struct {
	numbers
	blocked laneHeap // by place: those for whose units the window has no room
}

// grouping is a run's groups.
type grouping struct {
	each    [groups]group
	blocked int     // lanes in the groups' heaps
	stalled []*lane // queues for whose units no window has room
}

func newGrouping(unordered bool) grouping {
	var g grouping
	for i := range g.each {
		g.each[i].unordered, g.each[i].blocked.before = unordered, byPlace
	}
	g.identify(aggregate.ProducerID{})
	return g
}

// identify gives the groups their identities: the run's, with the number of the group as its
// last bits.
func (g *grouping) identify(run aggregate.ProducerID) {
	for i := range g.each {
		id := run
		id[len(id)-1] = id[len(id)-1]&^(groups-1) | byte(i)
		g.each[i].id = id
	}
}

// run returns the run's identity, which is that of its first group.
func (g *grouping) run() aggregate.ProducerID { return g.each[0].id }

// settle takes out a unit that has an end. Units of other runs have no number here.
func (g *grouping) settle(u *unit) {
	last := u.id.Producer[len(u.id.Producer)-1]
	g.each[last&(groups-1)].settle(u)
}

// numbersFor returns the numbers of the group that the next unit of a lane is to be of, or nil if
// its window has no room. A packed unit has no order, and so it may be of any group that the
// queue's shard has a part of: its first record's, or the next one behind that with room.
func (c *core) numbersFor(l *lane) *numbers {
	first := groupOf(l.hashKey())
	if n := &c.groups.each[first].numbers; n.room(c.limits.window) > 0 {
		return n
	}
	if !l.queue {
		return nil
	}
	shard, _ := c.chart.predict(l.hashKey())
	within := c.chart.ranges[shard]
	low := groupOf(within.Start)
	count := groupOf(within.End) - low + 1
	for i := 1; i < count; i++ {
		n := &c.groups.each[low+(first-low+i)%count].numbers
		if n.room(c.limits.window) > 0 {
			return n
		}
	}
	return nil
}

// clear forgets the lanes that are blocked.
func (g *grouping) clear() {
	for i := range g.each {
		g.each[i].blocked.lanes = nil
	}
	g.blocked, g.stalled = 0, nil
}

// block takes aside a lane for whose unit there is no number.
func (c *core) block(l *lane) {
	l.state = blocked
	if l.queue {
		c.groups.stalled = append(c.groups.stalled, l)
		return
	}
	c.groups.blocked++
	heap.Push(&c.groups.each[groupOf(l.hashKey())].blocked, l)
}

// unblock makes ready the lanes for whose units there are numbers again.
func (c *core) unblock(now time.Time) {
	for i := 0; i < groups && c.groups.blocked > 0; i++ {
		g := &c.groups.each[i]
		for room := g.room(c.limits.window); room > 0 && g.blocked.Len() > 0; {
			l := heap.Pop(&g.blocked).(*lane)
			c.groups.blocked--
			if c.next(now, l); l.state == ready {
				room--
			}
		}
	}
	stalled := c.groups.stalled
	c.groups.stalled = nil
	for _, l := range stalled {
		if l.empty() || c.numbersFor(l) != nil {
			c.next(now, l)
		} else {
			c.groups.stalled = append(c.groups.stalled, l)
		}
	}
}

// unblocks reports whether unblock has something to do: a unit was settled since the last tick.
func (c *core) unblocks() bool {
	for i := 0; i < groups && c.groups.blocked > 0; i++ {
		g := &c.groups.each[i]
		if g.blocked.Len() > 0 && g.room(c.limits.window) > 0 {
			return true
		}
	}
	for _, l := range c.groups.stalled {
		if l.empty() || c.numbersFor(l) != nil {
			return true
		}
	}
	return false
}
