package producer

import (
	"container/heap"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// A run's lanes are in groups. A group has a range of the key space, by the first bits of a hash
// key, and an identity, numbers, a LOW and a window of its own.
//
// With one LOW for all lanes, a single unit without an end stops everything: LOW stays at its
// number, newer units fill the window, and no lane can freeze another. With groups it stops a
// 16th of the key space.
//
// The naive way is a group for each shard. But a reshard would then move lanes to other groups
// while their units are open, or were given up and may still be stored. A filter judges a unit by
// the LOW of its own group alone, so it would deliver such a unit's late copy behind newer ones
// of its lane. So a lane keeps its group for the whole run, and the ranges are equal. A shard's
// lanes are in few groups (in two, of eight equal shards), and shards with a group in common
// share its window.
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
	trouble int      // see trouble
	blocked laneHeap // by place: the lanes that wait for a number, since the window is full
}

// grouping is a run's groups.
type grouping struct {
	window  uint64
	each    [groups]group
	blocked int     // lanes in the groups' heaps
	stalled []*lane // queues that wait for a number of any group of their shard
}

func newGrouping(unordered bool, window uint64) grouping {
	g := grouping{window: window}
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

// numbers returns those of a group, or nil if its window has no room.
func (g *grouping) numbers(group int) *numbers {
	if n := &g.each[group].numbers; n.room(g.window) > 0 {
		return n
	}
	return nil
}

// numbersFor returns the numbers of the group that the next unit of a lane is to be of, or nil if
// its window has no room. A packed unit has no order, and so it may be of any group that the
// queue's shard has a part of: its first record's, or the next one behind that with room.
func (c *core) numbersFor(l *lane) *numbers {
	first := groupOf(l.hashKey())
	if n := c.groups.numbers(first); n != nil {
		return n
	}
	if !l.queue {
		return nil
	}
	low, high := c.groupsOf(l)
	count := high - low + 1
	for i := 1; i < count; i++ {
		if n := c.groups.numbers(low + (first-low+i)%count); n != nil {
			return n
		}
	}
	return nil
}

// groupsOf returns the first and the last group that the records of a lane can be of: one, or, for
// a queue and a packed unit, those of its shard.
func (c *core) groupsOf(l *lane) (low, high int) {
	if l.queue || l.carrier {
		if shard, known := c.chart.predict(l.hashKey()); known {
			within := c.chart.ranges[shard]
			return groupOf(within.Start), groupOf(within.End)
		}
	}
	group := groupOf(l.hashKey())
	return group, group
}

const (
	hitch       = 8  // clean units until a group has no trouble after one attempt that failed
	mostHitches = 64 // clean units after many of them
)

// trouble counts an attempt of a lane that failed, or its wait for a shard that is slowed down or
// for a number. clean counts a unit that was stored by its first attempt. A group in trouble
// cannot use a deep buffer, unlike one with a hot key, which has no trouble.
func (g *grouping) trouble(low, high int) { g.addTrouble(low, high, hitch) }

func (g *grouping) clean(low, high int) { g.addTrouble(low, high, -1) }

func (g *grouping) addTrouble(low, high, n int) {
	for i := low; i <= high; i++ {
		t := &g.each[i].trouble
		*t = max(0, min(*t+n, mostHitches))
	}
}

// troubled reports whether a group is in trouble.
func (g *grouping) troubled(group int) bool { return g.each[group].trouble > 0 }

// clear forgets the lanes that are blocked.
func (g *grouping) clear() {
	for i := range g.each {
		g.each[i].blocked.lanes = nil
	}
	g.blocked, g.stalled = 0, nil
}

// block takes aside a lane that gets no number now.
func (c *core) block(l *lane) {
	l.state = blocked
	c.groups.trouble(c.groupsOf(l))
	if l.queue {
		c.groups.stalled = append(c.groups.stalled, l)
		return
	}
	c.groups.blocked++
	heap.Push(&c.groups.each[groupOf(l.hashKey())].blocked, l)
}

// unblock makes ready the lanes that can get a number again.
func (c *core) unblock(now time.Time) {
	for i := 0; i < groups && c.groups.blocked > 0; i++ {
		g := &c.groups.each[i]
		for room := g.room(c.groups.window); room > 0 && g.blocked.Len() > 0; {
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
		if g.blocked.Len() > 0 && g.room(c.groups.window) > 0 {
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
