package catalogue

import (
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/serverclock"
)

// applyPlan makes a stream UPDATING and stores its pending steps, which are carried out at the end
// of UPDATING.
func (c *Catalogue) applyPlan(st *Stream, ch *Change) error {
	if len(ch.Plan) == 0 || len(st.Pending) > 0 {
		return fmt.Errorf("%w: %d steps after %d", errChange, len(ch.Plan), len(st.Pending))
	}
	if err := st.checkSteps(ch.Plan); err != nil {
		return err
	}
	next := st.copy()
	next.Phase, next.Until, next.Pending = StatusUpdating, ch.Until, ch.Plan
	c.streams[st.Key()] = next
	return nil
}

// checkSteps returns an error unless the steps can be carried out: each one must name existing
// pieces, and the pieces after all steps must tile the key space. Pending steps must not fail when
// they are due.
func (st *Stream) checkSteps(steps []Step) error {
	if len(steps) == 0 {
		return nil
	}
	if n := len(st.Shards); n > 0 && st.Shards[n-1].Index >= st.Next {
		return fmt.Errorf("%w: stream %s: its next shard is there", errChange, st.Name)
	}
	if next, open := st.After(steps); next-1 > shardid.Max || open > MaxShards {
		return fmt.Errorf("%w: stream %s: its steps lead to %d open shards, and shard %d",
			errChange, st.Name, open, next-1)
	}
	pieces := make([]keyspace.Range, 0, len(st.routes)+2*len(steps))
	for _, sh := range st.routes {
		pieces = append(pieces, sh.Range)
	}
	gone := make([]bool, len(pieces), cap(pieces))
	for i, step := range steps {
		for _, piece := range step.From {
			if piece < 0 || piece >= len(pieces) || gone[piece] {
				return fmt.Errorf("%w: stream %s: step %d is of piece %d, which is not there",
					errChange, st.Name, i, piece)
			}
			gone[piece] = true
		}
		pieces = append(pieces, step.To...)
		gone = append(gone, make([]bool, len(step.To))...)
	}
	var left []keyspace.Range
	for i, piece := range pieces {
		if !gone[i] {
			left = append(left, piece)
		}
	}
	if err := keyspace.Tiles(left); err != nil {
		return fmt.Errorf("%w: stream %s: what the steps leave: %w", errChange, st.Name, err)
	}
	return nil
}

// Piece returns the index of an open shard among all open ones, by hash key. Steps use this index.
func (st *Stream) Piece(sh *Shard) int { return slices.Index(st.routes, sh) }

// Due reports whether it is time to carry out the pending steps.
func (st *Stream) Due(now serverclock.Moment) bool {
	return len(st.Pending) > 0 && st.Phase != StatusDeleting && now.Elapsed >= st.Until
}

// After returns the index of the next shard and the number of open ones once the steps are carried
// out. The index may be above shardid.Max.
func (st *Stream) After(steps []Step) (next int64, open int) {
	next = int64(st.Next)
	for _, step := range steps {
		next += int64(len(step.To))
	}
	return next, len(st.routes) + Growth(steps)
}

// Growth returns the number of open shards that the steps add.
func Growth(steps []Step) (more int) {
	for _, step := range steps {
		more += len(step.To) - len(step.From)
	}
	return more
}
