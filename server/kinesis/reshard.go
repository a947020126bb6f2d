package kinesis

import (
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
func (c *catalogue) reshard(
	tx *wal.Tx, st *stream, parents []*shard, ranges []keyspace.Range, now, until int64,
) error {
	next := c.newChildren(st, now)
	ids, open := next.of(parents, ranges)
	if err := mayOpen(st, next.index, len(st.routes)+len(open)-len(parents)); err != nil {
		return err
	}
	return c.commit(tx, &change{
		Op: changeReshard, At: now, World: &st.World, Name: st.Name, Until: until,
		Close: ids, Open: open,
	})
}
