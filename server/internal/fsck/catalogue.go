package fsck

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// catalogueState is the part of the catalogue's snapshot that fsck needs: see
// server/internal/kinesis/catalogue.go.
type catalogueState struct {
	Streams []struct {
		World  wire.World `json:"world"`
		Name   string     `json:"name"`
		Shards []struct {
			Index  uint32      `json:"index"`
			Log    shardlog.ID `json:"log"`
			Closed int64       `json:"closed"`
		} `json:"shards"`
	} `json:"streams"`
}

// catalogue lists the streams, and compares their shards with those of the records.
func (c *checker) catalogue(ctx context.Context) error {
	text, err := c.log.State(ctx, wal.KindCatalogue)
	if err != nil {
		return err
	}
	var state catalogueState
	if err := json.Unmarshal(text, &state); err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	records := map[shardlog.ID]*shardlog.Inspected{}
	for _, sh := range c.records.Shards() {
		records[sh.ID] = sh
	}
	c.names = map[shardlog.ID]string{}
	for _, st := range state.Streams {
		stream := Stream{Account: st.World.Account, Region: st.World.Region, Name: st.Name}
		for _, sh := range st.Shards {
			id := shardid.Of(sh.Index)
			name := st.Name + " " + id
			shard := Shard{
				ShardID: id, Folder: strconv.FormatUint(uint64(sh.Log), 10), Open: sh.Closed == 0,
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
				shard.Skips = found.Skips
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
	return nil
}
