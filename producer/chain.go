package producer

import "github.com/runnel-stream/runnel"

// maxLinks is how many lanes' last numbers a chain keeps. Without its number a lane's next
// record still goes after the one before it was acknowledged.
const maxLinks = 1 << 16

// chain is the last acknowledged number of lanes, for SequenceNumberForOrdering.
type chain map[laneKey]runnel.SequenceNumber

// link keeps the number of a lane's record that was acknowledged. Any other goes for it when
// there are too many.
func (c *core) link(l *lane, number runnel.SequenceNumber) {
	if !c.limits.chained {
		return
	}
	if c.chain == nil {
		c.chain = chain{}
	}
	if _, known := c.chain[l.key]; !known && len(c.chain) >= maxLinks {
		for other := range c.chain {
			delete(c.chain, other)
			break
		}
	}
	c.chain[l.key] = number
}

// unchain forgets a lane's number, and reports whether there was one: a stream may refuse that
// of a shard that has been split or merged since.
func (c *core) unchain(l *lane) bool {
	_, known := c.chain[l.key]
	delete(c.chain, l.key)
	return known
}
