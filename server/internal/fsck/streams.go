package fsck

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// streams lists the streams, and compares their shards with those of the records.
func (c *checker) streams(all *catalogue.Catalogue) {
	records := map[shardlog.ID]*shardlog.Inspected{}
	for _, sh := range c.records.Shards() {
		records[sh.ID] = sh
	}
	c.names = map[shardlog.ID]string{}
	for st := range all.All() {
		stream := Stream{Account: st.World.Account, Region: st.World.Region, Name: st.Name}
		for _, sh := range st.Shards {
			id := sh.ID()
			name := st.Name + " " + id
			shard := Shard{
				ShardID: id, Folder: strconv.FormatUint(uint64(sh.Log), 10), Open: sh.IsOpen(),
			}
			found := records[sh.Log]
			if found == nil {
				c.damage(Damage{
					What: fmt.Sprintf("the catalogue has %s, and there are no records of it, "+
						"not even none", name),
					Lost: "a server could not serve this shard: restore the directory from a copy",
				})
			} else {
				shard.Oldest, shard.Next, shard.InLog = found.Oldest, found.Next, found.InLog
				shard.Segments, shard.Bytes = found.Segments, found.Bytes
				shard.Skips, shard.Lost = found.Skips, found.Lost
			}
			c.names[sh.Log] = name
			stream.Shards = append(stream.Shards, shard)
		}
		c.report.Streams = append(c.report.Streams, stream)
	}
	for _, sh := range c.records.Shards() {
		if c.names[sh.ID] == "" && sh.Next > 1 {
			c.damage(Damage{
				What: fmt.Sprintf("there are %d records of shard folder %d, which belongs to no "+
					"stream", sh.Next-sh.Oldest, sh.ID),
				Lost: lostCatalogue,
			})
		}
	}
	slices.SortFunc(c.report.Streams, func(a, b Stream) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Region, b.Region),
			cmp.Compare(a.Name, b.Name))
	})
}
