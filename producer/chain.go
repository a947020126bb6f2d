package producer

import "github.com/runnel-stream/runnel"

// maxLinks is the most lanes whose last numbers a chain keeps. A lane without one still sends its
// next record after the acknowledgement of the one before it.
const maxLinks = 1 << 16

// chain holds the last acknowledged numbers of lanes, for SequenceNumberForOrdering. It is nil in
// the orders other than OrderChained.
type chain map[laneKey]runnel.SequenceNumber

// link keeps the number of a lane's acknowledged record. A full chain drops any other number.
func (c chain) link(lane laneKey, number runnel.SequenceNumber) {
	if c == nil {
		return
	}
	if _, known := c[lane]; !known && len(c) >= maxLinks {
		for other := range c {
			delete(c, other)
			break
		}
	}
	c[lane] = number
}

// unlink forgets a lane's number, and reports whether there was one: a stream may refuse the number
// of a shard that was split or merged since.
func (c chain) unlink(lane laneKey) bool {
	_, known := c[lane]
	delete(c, lane)
	return known
}
