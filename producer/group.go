package producer

import (
	"container/heap"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// The lanes of a run are divided into groups. A group has a range of the key space, given by the
// first bits of a hash key, and its own producer id, unit numbers, LOW and window.
//
// With one LOW for all lanes, a single unit that does not settle stops everything: LOW stays at its
// number, newer units fill the window, and no lane can freeze another unit. With groups it stops
// only a 16th of the key space.
//
// The naive division is one group for each shard. But a reshard would then move lanes to other
// groups while some of their units are open, or were given up and may still be stored. A filter
// judges a unit only by the LOW of its own group, so it would deliver a late copy of such a unit
// behind newer units of its lane. Therefore a lane keeps its group for the whole run, and the
// ranges are equal. A shard's lanes are in few groups (two, with eight equal shards), and shards
// with a group in common share its window.
const (
	groupBits = 4
	groups    = 1 << groupBits

	// groupWindow is how far a number may exceed the lowest unsettled number of its group. All
	// groups together have the window that the format allows one producer.
	groupWindow = aggregate.Window / groups
)

// groupOf returns the number of a hash key's group.
func groupOf(hash keyspace.Key) int { return int(hash.Hi >> (64 - groupBits)) }

// group is the state that the lanes of one group share.
type group struct {
	numbers
	trouble int      // how bad its recent attempts were; see addTrouble
	blocked laneHeap // by place: lanes that wait for a number while the window is full
}

// grouping holds the groups of a run.
type grouping struct {
	window  uint64
	each    [groups]group
	blocked int     // the number of lanes in the groups' blocked
	stalled []*lane // queues that wait for a number from any group of their shard
}

func newGrouping(window uint64) grouping {
	g := grouping{window: window}
	for i := range g.each {
		g.each[i].blocked.before = byPlace
	}
	g.identify(aggregate.ProducerID{})
	return g
}

// dropOrder makes the units of all groups unordered.
func (g *grouping) dropOrder() {
	for i := range g.each {
		g.each[i].unordered = true
	}
}

// identify gives each group its producer id: the run's, with the group's number in the last bits.
func (g *grouping) identify(run aggregate.ProducerID) {
	for i := range g.each {
		id := run
		id[len(id)-1] = id[len(id)-1]&^(groups-1) | byte(i)
		g.each[i].id = id
	}
}

// run returns the producer id of the run, which is that of group 0.
func (g *grouping) run() aggregate.ProducerID { return g.each[0].id }

// settle removes a unit that has ended from its group's numbers. numbers.settle ignores units of
// other runs.
func (g *grouping) settle(u *unit) {
	last := u.id.Producer[len(u.id.Producer)-1]
	g.each[last&(groups-1)].settle(u)
}

// numbers returns the numbers of a group, or nil if its window is full.
func (g *grouping) numbers(group int) *numbers {
	if n := &g.each[group].numbers; n.room(g.window) > 0 {
		return n
	}
	return nil
}

// numbersFor returns the numbers from which the next unit of a lane gets its own, or nil if the
// window is full. A unit of a queue has no order, so any group that overlaps the queue's shard will
// do: numbersFor tries the group of the first record, and then the others in turn.
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

// groupsOf returns the first and the last group of a lane's records: twice the same, or, for a
// queue or a carrier, those that its shard overlaps.
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
	troubleStep = 8  // added for a failed attempt: so many clean units end the trouble
	maxTrouble  = 64 // the most clean units that it takes
)

// trouble counts a failed attempt of a lane, or that it has to wait for a number or for a shard
// that is slowed down. clean counts a unit that was stored at its first attempt.
//
// A group in trouble cannot use a deep share of the buffer (see room). A group with a busy lane
// can, and is not in trouble.
func (g *grouping) trouble(low, high int) { g.addTrouble(low, high, troubleStep) }

func (g *grouping) clean(low, high int) { g.addTrouble(low, high, -1) }

// addTrouble adds n to the trouble of some groups, within 0 and maxTrouble.

func (g *grouping) addTrouble(low, high, n int) {
	for i := low; i <= high; i++ {
		t := &g.each[i].trouble
		*t = max(0, min(*t+n, maxTrouble))
	}
}

// troubled reports whether a group is in trouble.
func (g *grouping) troubled(group int) bool { return g.each[group].trouble > 0 }

// clear forgets the lanes that wait for numbers.
func (g *grouping) clear() {
	for i := range g.each {
		g.each[i].blocked.lanes = nil
	}
	g.blocked, g.stalled = 0, nil
}

// block sets a lane aside until its group has a number for it.
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

// unblocks reports whether unblock would make a lane ready, because a unit was settled since the
// last tick.
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
