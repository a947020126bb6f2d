package catalogue

import (
	"fmt"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// Values of a rescued stream: AWS's longest retention period in hours, so that nothing expires
// before it is read, and its default size of records in KiB.
const (
	rescueRetention = 8760
	rescueMaxRecord = 1024
)

// NextLog returns the id of the next shard's records, inside Read or Write.
func (c *Catalogue) NextLog() shardlog.ID { return c.state.NextLog }

// Rescue adds the stream lost-ID for the records of a shard without a stream. arrival is
// that of the oldest record. Only a repair calls it: the change is in the next snapshot, not in the
// log. The stream is in the world with the most streams, since its own world is lost, too.
func (c *Catalogue) Rescue(id shardlog.ID, arrival int64) (*Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	arrival = max(arrival, 1)
	st := &Stream{
		World: c.mostUsed(), Name: fmt.Sprintf("lost-%d", id),
		Created: arrival, Retention: rescueRetention,
		Settings: Settings{Mode: ModeProvisioned, MaxRecord: rescueMaxRecord},
		Shards: []*Shard{{
			Log: id, Range: keyspace.Uniform(1)[0], Created: arrival / 1000, Opened: arrival,
		}},
		Next: 1,
	}
	for n := 2; c.streams[st.Key()] != nil; n++ {
		st.Name = fmt.Sprintf("lost-%d-%d", id, n)
	}
	if err := st.index(); err != nil {
		return nil, err
	}
	c.streams[st.Key()] = st
	c.state.NextLog = max(c.state.NextLog, id+1)
	return st, nil
}

// mostUsed returns the world with the most streams, and the default one if there are none.
func (c *Catalogue) mostUsed() wire.World {
	most := wire.World{Account: wire.DefaultAccount, Region: wire.DefaultRegion}
	counts := map[wire.World]int{}
	for key := range c.streams {
		counts[key.World]++
	}
	for world, count := range counts {
		if count > counts[most] ||
			count == counts[most] && world.Account+world.Region < most.Account+most.Region {
			most = world
		}
	}
	return most
}
