package kinesis

import "github.com/runnel-stream/runnel/server/internal/catalogue"

// shardFilter is the model's ShardFilter: it selects shards of a stream.
type shardFilter struct {
	Type      *string
	ShardID   *string    `json:"ShardId,omitempty"`
	Timestamp *timestamp `json:",omitempty"`
}

// The filter's types.
const (
	afterShardID    = "AFTER_SHARD_ID"
	atTrimHorizon   = "AT_TRIM_HORIZON"
	fromTrimHorizon = "FROM_TRIM_HORIZON"
	atLatest        = "AT_LATEST"
	atTimestamp     = "AT_TIMESTAMP"
	fromTimestamp   = "FROM_TIMESTAMP"
)

func (f *shardFilter) validate(v *violations) {
	kind := *f.Type
	if (f.ShardID != nil) != (kind == afterShardID) {
		v.fail(invalid("ShardFilter has a ShardId if and only if its Type is %s; it is %s.",
			afterShardID, kind))
	}
	if (f.Timestamp != nil) != (kind == atTimestamp || kind == fromTimestamp) {
		v.fail(invalid("ShardFilter has a Timestamp if and only if its Type is %s or %s; it is %s.",
			atTimestamp, fromTimestamp, kind))
	}
}

// apply returns the shards that match the filter, of a stream's listed shards. A time before the
// horizon means the horizon: nothing older is known.
func (f *shardFilter) apply(st *catalogue.Stream, now moment) []*catalogue.Shard {
	horizon := st.Horizon(now)
	keep := func(*catalogue.Shard) bool { return true }
	switch *f.Type {
	case afterShardID:
		keep = func(sh *catalogue.Shard) bool { return sh.ID() > *f.ShardID }
	case atLatest:
		keep = (*catalogue.Shard).IsOpen
	case atTrimHorizon:
		keep = openAt(horizon)
	case atTimestamp:
		keep = openAt(max(int64(*f.Timestamp), horizon))
	case fromTimestamp:
		from := max(int64(*f.Timestamp), horizon)
		keep = func(sh *catalogue.Shard) bool { return sh.IsOpen() || sh.Closed >= from }
	}
	var kept []*catalogue.Shard
	for _, sh := range st.Listed(now) {
		if keep(sh) {
			kept = append(kept, sh)
		}
	}
	return kept
}

// openAt selects the shards that were open at a time: opened by then, and not closed before.
func openAt(at int64) func(*catalogue.Shard) bool {
	return func(sh *catalogue.Shard) bool {
		return sh.Opened <= at && (sh.IsOpen() || sh.Closed >= at)
	}
}
