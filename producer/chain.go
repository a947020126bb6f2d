package producer

import "github.com/runnel-stream/runnel"

// maxLinks is the most lanes in a chain. A lane that is not in it is sent without
// SequenceNumberForOrdering, but still only after the previous record was acknowledged.
const maxLinks = 1 << 16

// chain holds the sequence number of each lane's last acknowledged record, for
// SequenceNumberForOrdering. It is nil except in OrderChained.
type chain map[laneKey]runnel.SequenceNumber

// link stores the number of a lane's acknowledged record. If the chain is full, it drops another
// lane.
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

// unlink removes a lane's number, and reports whether there was one. A stream may refuse the number
// of a shard that has been split or merged since.
func (c chain) unlink(lane laneKey) bool {
	_, known := c[lane]
	delete(c, lane)
	return known
}
