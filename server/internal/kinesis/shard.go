package kinesis

import (
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// shard is a shard in the catalogue. A published value never changes: closing a shard replaces it
// by a changed copy.
type shard struct {
	Index   uint32         `json:"index"` // the number in its id
	Log     shardlog.ID    `json:"log"`   // its records
	Range   keyspace.Range `json:"range"`
	Created int64          `json:"created"` // in its sequence numbers: seconds since 1970
	Opened  int64          `json:"opened"`  // ms since 1970
	Closed  int64          `json:"closed,omitempty"`
	// Parents is none, the shard that was split, or the two that were merged, in the order
	// of the request.
	Parents []uint32 `json:"parents,omitempty"`
}

func (sh *shard) id() string { return shardid.Of(sh.Index) }

func (sh *shard) open() bool { return sh.Closed == 0 }

// number returns the sequence number of a record of the shard.
func (sh *shard) number(n shardlog.Number) sequenceNumber {
	return sequenceNumber{
		version: numberVersion,
		created: sh.Created,
		shard:   sh.Index,
		index:   n.Serial,
		arrival: n.Arrival / 1000,
	}
}

// start and end are the SequenceNumberRange; end is for closed shards only.
func (sh *shard) start() string {
	return sh.number(shardlog.Number{Arrival: sh.Created * 1000}).String()
}

func (sh *shard) end() string {
	return sh.number(shardlog.Number{Serial: endIndex, Arrival: sh.Closed}).String()
}

// expired reports whether all records of the shard are older than the retention period.
func (sh *shard) expired(now, retention int64) bool {
	return !sh.open() && sh.Closed+retention < now
}
