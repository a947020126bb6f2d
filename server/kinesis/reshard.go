package kinesis

import (
	"github.com/runnel-stream/runnel/internal/shardlog"
	"github.com/runnel-stream/runnel/internal/wal"
	"github.com/runnel-stream/runnel/keyspace"
)

// reshardable returns a stream's shard that a request wants to split or merge.
func reshardable(st *stream, id string, now int64) (*shard, error) {
	index, ok := parseShard(id)
	if !ok {
		return nil, couldNotFindShard(st.World, st.Name, id)
	}
	sh := st.shard(index, now)
	if sh == nil {
		return nil, couldNotFindShard(st.World, st.Name, shardName(index))
	}
	if !sh.open() {
		return nil, invalid("Shard %s in stream %s under account %s has already been merged or "+
			"split, and thus is not eligible for merging or splitting.",
			sh.id(), st.Name, st.World.Account)
	}
	return sh, nil
}

// mayReshard returns an error unless the stream's shards can be split and merged now.
func mayReshard(st *stream, operation string, now int64) error {
	if status := st.status(now); status != statusActive {
		return notActive(st, status)
	}
	if st.Mode != modeProvisioned {
		return fail(codeValidation, "Stream %s under account %s is in the %s mode, in which %s is "+
			"not supported.", st.Name, st.World.Account, st.Mode, operation)
	}
	return nil
}

// reshard closes parents and opens shards over ranges in their place, as one frame: whatever
// the moment of a crash, both are there or neither is. The stream is UPDATING until the time.
//
// The children are created in the second after now and after every parent's creation: numbers
// order by the shard's creation, and two reshardings within a second would otherwise give a
// grandchild numbers below its parent's.
func (c *catalogue) reshard(
	tx *wal.Tx, st *stream, parents []*shard, ranges []keyspace.Range, now, until int64,
) error {
	if int64(st.Next)+int64(len(ranges)) > maxShard {
		return fail(codeLimit, "Stream %s under account %s has used up its shard ids.",
			st.Name, st.World.Account)
	}
	if open := len(st.routes) + len(ranges) - len(parents); open > maxShards {
		return fail(codeLimit, "A stream can have %d open shards at most, not %d.", maxShards, open)
	}
	ch := &change{Op: changeReshard, At: now, World: &st.World, Name: st.Name, Until: until}
	created := now / 1000
	var ids []uint32
	for _, parent := range parents {
		created = max(created, parent.Created)
		ids = append(ids, parent.Index)
	}
	ch.Close = ids
	for i, r := range ranges {
		ch.Open = append(ch.Open, &shard{
			Index:   st.Next + uint32(i),
			Log:     c.state.NextLog + shardlog.ID(i),
			Range:   r,
			Created: created + 1,
			Opened:  now,
			Parents: ids,
		})
	}
	return c.commit(tx, ch)
}
