package kinesis

import (
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// reshardable returns the shard that a request names for a split or a merge.
func reshardable(st *stream, id string, now int64) (*shard, error) {
	index, ok := shardid.Parse(id)
	if !ok {
		return nil, couldNotFindShard(st.World, st.Name, id)
	}
	sh := st.shard(index, now)
	if sh == nil {
		return nil, couldNotFindShard(st.World, st.Name, shardid.Of(index))
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

// reshard begins UPDATING and has the steps carried out at its end. Until then the stream's shards
// are as before (AWS, seen by kinesalite's test/splitShard.js and test/mergeShards.js). If UPDATING
// takes no time, the steps are carried out now. The caller holds the catalogue's lock.
func (s *Service) reshard(tx *wal.Tx, st *stream, steps []scaleStep, now int64) error {
	if err := mayOpen(st, steps); err != nil {
		return err
	}
	until := s.until(now)
	if until <= now {
		return s.catalogue.scale(tx, st, steps, now)
	}
	err := s.catalogue.commit(tx, &change{
		Op: changePlan, At: now, World: &st.World, Name: st.Name, Until: until, Plan: steps,
	})
	s.resharder.notify()
	return err
}
