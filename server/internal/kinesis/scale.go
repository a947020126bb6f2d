package kinesis

import (
	"fmt"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// reshardStep is a split or a merge of a scaling: shards close, and others open in their place.
type reshardStep struct {
	Close []uint32 `json:"close"`
	Open  []*shard `json:"open"`
}

// scale carries out all steps of a plan for the open shards of a stream, as one frame: after a
// crash at any moment, all of the steps are there or none. If one step opens a shard and another
// closes it, that shard exists without records, as AWS says of UpdateShardCount: "This can cause
// short-lived shards to be created." The stream is ACTIVE from then on. The caller has called
// mayOpen.
func (c *catalogue) scale(tx *wal.Tx, st *stream, steps []scaleStep, now int64) error {
	return c.commit(tx, c.scaling(st, steps, now))
}

// scaling returns the change that carries out the steps.
func (c *catalogue) scaling(st *stream, steps []scaleStep, now int64) *change {
	pieces := append(make([]*shard, 0, len(st.routes)+2*len(steps)), st.routes...)
	ch := &change{Op: changeScale, At: now, World: &st.World, Name: st.Name}
	next := c.newChildren(st, now)
	for _, step := range steps {
		parents := make([]*shard, len(step.From))
		for i, piece := range step.From {
			parents[i] = pieces[piece]
		}
		ids, children := next.of(parents, step.To)
		ch.Steps = append(ch.Steps, reshardStep{Close: ids, Open: children})
		pieces = append(pieces, children...)
	}
	return ch
}

// mayOpen returns an error unless the quotas allow the stream the shards that the steps open.
func mayOpen(st *stream, steps []scaleStep) error {
	next, open := int64(st.Next), len(st.routes)+growth(steps)
	for _, step := range steps {
		next += int64(len(step.To))
	}
	if next-1 > shardid.Max {
		return fail(codeLimit, "Stream %s under account %s has used up its shard ids.",
			st.Name, st.World.Account)
	}
	if open > maxShards {
		return fail(codeLimit, "A stream can have %d open shards at most, not %d.", maxShards, open)
	}
	return nil
}

// children creates the shards of a reshard, one after the other.
type children struct {
	index int64 // of the next one
	log   shardlog.ID
	now   int64
}

func (c *catalogue) newChildren(st *stream, now int64) *children {
	return &children{index: int64(st.Next), log: c.state.NextLog, now: now}
}

// of returns the parents' indexes and new shards over the ranges in their place.
//
// The children are created in the second after now and after every parent's creation: numbers
// order by the shard's creation, and two reshardings within a second would otherwise give a
// grandchild numbers below its parent's.
func (c *children) of(parents []*shard, ranges []keyspace.Range) (ids []uint32, open []*shard) {
	created := c.now / 1000
	for _, parent := range parents {
		created = max(created, parent.Created)
		ids = append(ids, parent.Index)
	}
	for _, r := range ranges {
		open = append(open, &shard{
			Index:   uint32(c.index),
			Log:     c.log,
			Range:   r,
			Created: created + 1,
			Opened:  c.now,
			Parents: ids,
		})
		c.index++
		c.log++
	}
	return ids, open
}

// applySteps closes the parents of every step before it opens the children, and publishes all
// of it at once.
func (c *catalogue) applySteps(
	st *stream, ch *change, steps []reshardStep,
) (later publications, err error) {
	next := st.copy()
	for _, step := range steps {
		for _, index := range step.Close {
			at := next.position(index)
			if at < 0 || !next.Shards[at].open() {
				return nil, fmt.Errorf("%w: shard %d is not open", errChange, index)
			}
			closed := *next.Shards[at]
			closed.Closed = ch.At
			next.Shards[at] = &closed
		}
		for _, sh := range step.Open {
			if sh == nil {
				return nil, fmt.Errorf("%w: a shard is missing", errChange)
			}
		}
		next.Shards = append(next.Shards, step.Open...)
		next.Next += uint32(len(step.Open))
	}
	next.Phase, next.Until, next.Pending = "", 0, nil
	if ch.Until != 0 { // it took effect at once, at the beginning of UPDATING
		next.Phase, next.Until = statusUpdating, ch.Until
	}
	if err := checkShards(next.Shards); err != nil {
		return nil, err
	}
	if err := next.index(); err != nil {
		return nil, err
	}
	for _, step := range steps {
		for _, index := range step.Close {
			later = append(later, c.store.Seal(next.Shards[next.position(index)].Log))
		}
		for _, sh := range step.Open {
			c.store.Create(sh.Log)
			c.state.NextLog = max(c.state.NextLog, sh.Log+1)
		}
	}
	c.streams[st.key()] = next
	return later, nil
}
