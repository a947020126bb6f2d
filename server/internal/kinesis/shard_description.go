package kinesis

import (
	"sort"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/keyspace"
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

func describeShards(shards []*shard) []shardDescription {
	described := make([]shardDescription, len(shards))
	for i, sh := range shards {
		d := &described[i]
		d.ShardID = sh.id()
		d.HashKeyRange = describeRange(sh.Range)
		d.SequenceNumberRange.StartingSequenceNumber = sh.start()
		if !sh.open() {
			d.SequenceNumberRange.EndingSequenceNumber = sh.end()
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

// shardPage returns the first limit shards with ids above after, in the order of their ids, and
// whether there are more.
func shardPage(shards []*shard, after string, limit int) (page []*shard, more bool) {
	shards = shards[sort.Search(len(shards), func(i int) bool { return shards[i].id() > after }):]
	if len(shards) > limit {
		return shards[:limit], true
	}
	return shards, false
}
