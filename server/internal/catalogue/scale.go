package catalogue

import (
	"fmt"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/serverclock"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Replacement is a split or a merge of a scaling: shards close, and others open in their place.
type Replacement struct {
	Close []uint32 `json:"close"`
	Open  []*Shard `json:"open"`
}

// Scale carries out all steps of a plan for the open shards of a stream, as one frame: after a
// crash at any moment, all of the steps are there or none. If one step opens a shard and another
// closes it, that shard exists without records, as AWS says of UpdateShardCount: "This can cause
// short-lived shards to be created." The stream is ACTIVE from then on. The caller has called
// mayOpen.
func (c *Catalogue) Scale(tx *wal.Tx, st *Stream, steps []Step, now serverclock.Moment) error {
	return c.Commit(tx, c.scaling(st, steps, now))
}

// scaling returns the change that carries out the steps.
func (c *Catalogue) scaling(st *Stream, steps []Step, now serverclock.Moment) *Change {
	pieces := append(make([]*Shard, 0, len(st.routes)+2*len(steps)), st.routes...)
	ch := &Change{Op: ChangeScale, At: now.Stamp, World: &st.World, Name: st.Name}
	next := c.newChildren(st, now.Stamp)
	for _, step := range steps {
		parents := make([]*Shard, len(step.From))
		for i, piece := range step.From {
			parents[i] = pieces[piece]
		}
		ids, children := next.of(parents, step.To)
		ch.Steps = append(ch.Steps, Replacement{Close: ids, Open: children})
		pieces = append(pieces, children...)
	}
	return ch
}

// children creates the shards of a reshard, one after the other.
type children struct {
	index int64 // of the next one
	log   shardlog.ID
	now   int64
}

func (c *Catalogue) newChildren(st *Stream, now int64) *children {
	return &children{index: int64(st.Next), log: c.state.NextLog, now: now}
}

// of returns the parents' indexes and new shards over the ranges in their place.
//
// The children are created in the second after now and after every parent's creation: numbers
// order by the shard's creation, and two reshardings within a second would otherwise give a
// grandchild numbers below its parent's.
func (c *children) of(parents []*Shard, ranges []keyspace.Range) (ids []uint32, open []*Shard) {
	created := c.now / 1000
	for _, parent := range parents {
		created = max(created, parent.Created)
		ids = append(ids, parent.Index)
	}
	for _, r := range ranges {
		open = append(open, &Shard{
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
func (c *Catalogue) applySteps(
	st *Stream, ch *Change, steps []Replacement,
) (later publications, err error) {
	next := st.copy()
	for _, step := range steps {
		for _, index := range step.Close {
			at := next.position(index)
			if at < 0 || !next.Shards[at].IsOpen() {
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
		next.Phase, next.Until = StatusUpdating, ch.Until
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
	c.streams[st.Key()] = next
	return later, nil
}
