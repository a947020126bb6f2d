package kinesis

import (
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/keyspace"
)

// applyPlan makes a stream UPDATING and stores its pending steps, which are carried out at the end
// of UPDATING.
func (c *catalogue) applyPlan(st *stream, ch *change) error {
	if len(ch.Plan) == 0 || len(st.Pending) > 0 {
		return fmt.Errorf("%w: %d steps after %d", errChange, len(ch.Plan), len(st.Pending))
	}
	if err := st.checkSteps(ch.Plan); err != nil {
		return err
	}
	next := st.copy()
	next.Phase, next.Until, next.Pending = statusUpdating, ch.Until, ch.Plan
	c.streams[st.key()] = next
	return nil
}

// checkSteps returns an error unless the steps can be carried out: each one must name existing
// pieces, and the pieces after all steps must tile the key space. Pending steps must not fail when
// they are due.
func (st *stream) checkSteps(steps []scaleStep) error {
	if len(steps) == 0 {
		return nil
	}
	if n := len(st.Shards); n > 0 && st.Shards[n-1].Index >= st.Next {
		return fmt.Errorf("%w: stream %s: its next shard is there", errChange, st.Name)
	}
	if err := mayOpen(st, steps); err != nil {
		return fmt.Errorf("%w: %w", errChange, err)
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

// piece returns the index of an open shard among all open ones, by hash key. Steps use this index.
func (st *stream) piece(sh *shard) int { return slices.Index(st.routes, sh) }

// due reports whether it is time to carry out the pending steps.
func (st *stream) due(now int64) bool {
	return len(st.Pending) > 0 && st.Phase != statusDeleting && now >= st.Until
}

// growth returns the number of open shards that the steps add.
func growth(steps []scaleStep) (more int) {
	for _, step := range steps {
		more += len(step.To) - len(step.From)
	}
	return more
}
