package consumer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/opener"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/sink"
)

// readingAt returns the reading of the records after a commit, with the filter's state there.
//
// A sink holds the state in its commit, so that every writer that goes on there decides in the same
// way. If the sink has no commit of the shard, the shard begins with the states in its parents'
// commits. A handler's commit is the lease row's checkpoint, which holds no state. So a handler's
// shard gets a stored state only if this worker has ended all its parents. A state that is not
// stored is built by reading the stream again.
func (h *holding) readingAt(
	ctx context.Context, writer sink.Writer, c sink.Committed,
) (o reading, err error) {
	o = newReading(h.first.Key, c.End)
	o.Void = opener.Void(h.run.cfg.Void)
	if o.Keys, err = h.hashRange(ctx); err != nil || h.run.cfg.KeepDoubles {
		return o, err
	}
	if _, ok := writer.(*handlerWriter); ok {
		o.Filter, err = h.recall(ctx, c.End)
		return o, err
	}
	if c.End == runnel.Start() {
		o.Filter, err = h.inherit(ctx, c.Parents)
	} else {
		o.Filter, err = h.restore(c.State)
	}
	if err == nil {
		o.mirror = newMirror(o.Filter, len(c.State) > 0)
	}
	return o, err
}

// recall returns the filter at a position of a handler's shard.
func (h *holding) recall(ctx context.Context, at runnel.Position) (*aggregate.Filter, error) {
	if at == runnel.Start() && h.run.originOf(h.first).Word() == runnel.TrimHorizon {
		// All parents have ended, as their rows say, and ends has the states of this worker there.
		if states := h.run.ends.begin(h.first.Key, h.first.Parents); len(states) > 0 {
			parents, err := h.restoreAll(states)
			return aggregate.Union(parents...), err
		}
	}
	return h.rebuild(ctx, at)
}

// hashRange returns the range of the shard's hash keys: from the lease, or from the stream's list
// if another program made the row without a range. A shard that is not listed has no records to
// check.
func (h *holding) hashRange(ctx context.Context) (keyspace.Range, error) {
	if h.first.Range != nil {
		return *h.first.Range, nil
	}
	listed, err := h.listing(ctx)
	if s, ok := listed[h.first.Key]; ok && err == nil {
		return s.Range, nil
	}
	return keyspace.All(), err
}

// restore makes a filter from a state. A nil state makes a filter that has not met any unit.
func (h *holding) restore(state []byte) (*aggregate.Filter, error) {
	filter := new(aggregate.Filter)
	if len(state) == 0 {
		return filter, nil
	}
	if err := filter.UnmarshalBinary(state); err != nil {
		return nil, fmt.Errorf("shard %s: the reader's stored state cannot be used, "+
			"perhaps since a newer program wrote it: %w", h.first.Key, err)
	}
	return filter, nil
}

func (h *holding) restoreAll(states [][]byte) ([]*aggregate.Filter, error) {
	filters := make([]*aggregate.Filter, len(states))
	for i, state := range states {
		var err error
		if filters[i], err = h.restore(state); err != nil {
			return nil, err
		}
	}
	return filters, nil
}

// inherit returns the filter for the shard's beginning, or for the application's beginning in the
// shard: the union of its parents' states at their ends. If a parent has left no state, or no state
// is known, it is built by reading the stream again.
func (h *holding) inherit(ctx context.Context, states [][]byte) (*aggregate.Filter, error) {
	parents, err := h.restoreAll(states)
	if err != nil {
		return nil, err
	}
	unknown := func(state []byte) bool { return len(state) == 0 }
	if len(states) == 0 || slices.ContainsFunc(states, unknown) {
		filter, err := h.rebuild(ctx, runnel.Start())
		if err != nil {
			return nil, err
		}
		parents = append(parents, filter)
	}
	return aggregate.Union(parents...), nil
}

// listing returns the stream's shards by their ids, as listed at some time after this shard was
// made: its ancestors do not change.
func (h *holding) listing(ctx context.Context) (map[runnel.ShardID]runnel.Shard, error) {
	for _, age := range []time.Duration{h.run.cfg.AuditInterval, 0} {
		shards, err := h.run.shards.Shards(ctx, age)
		if err != nil {
			return nil, err
		}
		byID := make(map[runnel.ShardID]runnel.Shard, len(shards))
		for _, s := range shards {
			byID[s.ID] = s
		}
		if _, ok := byID[h.first.Key]; ok || age == 0 {
			return byID, nil
		}
	}
	return nil, nil
}
