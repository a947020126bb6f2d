package catalogue

import (
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// Shard is a shard in the catalogue. A published value never changes: closing a shard replaces it
// by a changed copy.
type Shard struct {
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

// ID returns the id in the API's form, as shardId-000000000007.
func (sh *Shard) ID() string { return shardid.Of(sh.Index) }

// IsOpen reports whether the shard takes records.
func (sh *Shard) IsOpen() bool { return sh.Closed == 0 }

// expired reports whether all records of the shard are older than the retention period, whose
// horizon is given.
func (sh *Shard) expired(horizon int64) bool { return !sh.IsOpen() && sh.Closed < horizon }
