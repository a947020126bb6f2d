package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// reshard lets decide split or merge the shards that a request names. A shard id that no shard can
// have is refused before an unknown stream (AWS, seen by kinesalite's test/splitShard.js and
// test/mergeShards.js).
func (s *streams) reshard(
	ctx context.Context, world wire.World, t *target, ids []string,
	decide func(tx *wal.Tx, st *catalogue.Stream, shards []uint32, now moment) error,
) error {
	name, err := t.name(world)
	if err != nil {
		return err
	}
	shards := make([]uint32, len(ids))
	for i, id := range ids {
		index, ok := shardid.Parse(id)
		if !ok {
			return couldNotFindShard(world, name, id)
		}
		shards[i] = index
	}
	return s.changeStream(ctx, world, t, func(
		tx *wal.Tx, st *catalogue.Stream, now moment,
	) error {
		return decide(tx, st, shards, now)
	})
}

// reshardable returns a shard for a split or a merge.
func reshardable(st *catalogue.Stream, index uint32, now moment) (*catalogue.Shard, error) {
	sh := st.Shard(index, now)
	if sh == nil {
		return nil, couldNotFindShard(st.World, st.Name, shardid.Of(index))
	}
	if !sh.IsOpen() {
		return nil, invalid("Shard %s in stream %s under account %s has already been merged or "+
			"split, and thus is not eligible for merging or splitting.",
			sh.ID(), st.Name, st.World.Account)
	}
	return sh, nil
}

// mayReshard returns an error unless the stream's shards can be split and merged now.
func mayReshard(st *catalogue.Stream, operation string, now moment) error {
	if status := st.Status(now); status != catalogue.StatusActive {
		return notActive(st, status)
	}
	if st.Mode != catalogue.ModeProvisioned {
		return fail(codeValidation, "Stream %s under account %s is in the %s mode, in which %s is "+
			"not supported.", st.Name, st.World.Account, st.Mode, operation)
	}
	return nil
}

// mayOpen returns an error unless the quotas allow the stream the shards that the steps open.
func mayOpen(st *catalogue.Stream, steps []catalogue.Step) error {
	next, open := st.After(steps)
	if next-1 > shardid.Max {
		return fail(codeLimit, "Stream %s under account %s has used up its shard ids.",
			st.Name, st.World.Account)
	}
	if open > catalogue.MaxShards {
		return fail(codeLimit, "A stream can have %d open shards at most, not %d.",
			catalogue.MaxShards, open)
	}
	return nil
}

// opened returns the number of shards that the steps open.
func opened(steps []catalogue.Step) (shards int64) {
	for _, step := range steps {
		shards += int64(len(step.To))
	}
	return shards
}

// reshard begins UPDATING and has the steps carried out at its end. Until then the stream's shards
// are as before (AWS, seen by kinesalite's test/splitShard.js and test/mergeShards.js). If UPDATING
// takes no time, the steps are carried out now. The caller holds the catalogue's lock.
func (r *resharder) reshard(
	tx *wal.Tx, st *catalogue.Stream, steps []catalogue.Step, now moment,
) error {
	if err := mayOpen(st, steps); err != nil {
		return err
	}
	room := ShardMemory * opened(steps)
	if err := r.streams.memory.Take(room); err != nil {
		return err
	}
	defer r.streams.memory.GiveBack(room)
	until := r.streams.until(now)
	if until <= now.Elapsed {
		return r.streams.catalogue.Scale(tx, st, steps, now)
	}
	err := r.streams.catalogue.Commit(tx, &catalogue.Change{
		Op: catalogue.ChangePlan, At: now.Stamp, World: &st.World, Name: st.Name, Until: until,
		Plan: steps,
	})
	r.planned.Add(opened(steps))
	r.notify()
	return err
}
