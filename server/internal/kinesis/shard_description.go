package kinesis

import (
	"sort"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// shardDescription is the model's Shard.
type shardDescription struct {
	ShardID               string `json:"ShardId"`
	ParentShardID         string `json:"ParentShardId,omitempty"`
	AdjacentParentShardID string `json:"AdjacentParentShardId,omitempty"`
	HashKeyRange          hashKeyRange
	SequenceNumberRange   sequenceNumberRange
}

type hashKeyRange struct{ StartingHashKey, EndingHashKey string }

type sequenceNumberRange struct {
	StartingSequenceNumber string
	EndingSequenceNumber   string `json:",omitempty"` // of a closed shard
}

func describeRange(r keyspace.Range) hashKeyRange {
	return hashKeyRange{r.Start.String(), r.End.String()}
}

func describeShards(shards []*catalogue.Shard) []shardDescription {
	described := make([]shardDescription, len(shards))
	for i, sh := range shards {
		d := &described[i]
		d.ShardID = sh.ID()
		d.HashKeyRange = describeRange(sh.Range)
		d.SequenceNumberRange.StartingSequenceNumber = startOf(sh)
		if !sh.IsOpen() {
			d.SequenceNumberRange.EndingSequenceNumber = endOf(sh)
		}
		if len(sh.Parents) > 0 {
			d.ParentShardID = shardid.Of(sh.Parents[0])
		}
		if len(sh.Parents) > 1 {
			d.AdjacentParentShardID = shardid.Of(sh.Parents[1])
		}
	}
	return described
}

// shardPage returns the shards whose ids are above a given one, at most limit of them, in the order
// of their ids, and whether there are more.
func shardPage(
	shards []*catalogue.Shard, after string, limit int,
) (page []*catalogue.Shard, more bool) {
	shards = shards[sort.Search(len(shards), func(i int) bool { return shards[i].ID() > after }):]
	if len(shards) > limit {
		return shards[:limit], true
	}
	return shards, false
}
