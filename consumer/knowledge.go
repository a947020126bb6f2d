package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/opener"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/sink"
)

// readingAt returns the reading of the records after a commit, with the filter's state there.
//
// A sink holds the state in its commit, so that every writer that goes on there decides in the same
// way. If the sink has no commit of the shard, the shard begins with the states in its parents'
// commits. A handler's commit is the lease row's checkpoint, which has the state, or points to it.
// A state that is not stored is built by reading the stream again: for a sink before reading
// begins, for a handler when the first unit comes.
func (h *holding) readingAt(
	ctx context.Context, f form, c sink.Committed,
) (o reading, err error) {
	o = newReading(h.first.Key, c.End)
	o.Void = opener.Void(h.run.cfg.Void)
	if o.Keys, err = h.hashRange(ctx); err != nil || h.run.cfg.KeepDoubles {
		return o, err
	}
	o.tracks = true
	of, isSink := f.(*sinkForm)
	if !isSink {
		_, batches := f.(*batchForm)
		o.single = !batches // the others commit within pages
		return o, h.recall(ctx, c.End, &o)
	}
	if c.End == runnel.Start() {
		o.Filter, err = h.inherit(ctx, c.Parents)
	} else {
		o.Filter, err = h.restore(c.State)
	}
	if err == nil {
		o.mirror = newMirror(o.Filter, len(c.State) > 0)
		of.mirror = o.mirror
	}
	return o, err
}

// recall gives a handler's reading the filter at a position, or the means to make it when the first
// unit comes.
func (h *holding) recall(ctx context.Context, at runnel.Position, o *reading) error {
	h.state, h.stateAt = h.run.states.of(ctx, h.first)
	filter, err := h.remember(ctx, at)
	if err != nil {
		return err
	}
	if filter == nil {
		o.build = h.rebuild
		if len(h.state) > 0 && h.stateAt.Less(at) {
			o.build = h.bringUp
		}
		return nil
	}
	filter.Track()
	o.Filter = filter
	h.keeper.know(filter.Clone(), h.seeks)
	return nil
}

// remember returns the filter at a position of a handler's shard; nil if it is not known. The row,
// or the table of states, has it with the checkpoint. A shard begins with the states at its
// parents' ends, which their rows have, or this worker.
func (h *holding) remember(ctx context.Context, at runnel.Position) (*aggregate.Filter, error) {
	if known := h.keeper.knows(); known != nil {
		return known, nil // this worker has read on from there before
	}
	if at != runnel.Start() {
		if h.stateAt != at || len(h.state) == 0 {
			return nil, nil //nolint:nilnil // nothing is known, which is no error
		}
		return h.readable(h.state), nil
	}
	if h.run.originOf(h.first).Word() != runnel.TrimHorizon {
		return nil, nil //nolint:nilnil // as above
	}
	if len(h.first.Parents) == 0 {
		return new(aggregate.Filter), nil // nothing came before
	}
	states := h.run.ends.begin(h.first.Key, h.first.Parents)
	if len(states) == 0 {
		var err error
		if states, err = h.parentsStates(ctx); err != nil || states == nil {
			return nil, err
		}
	}
	parents := make([]*aggregate.Filter, len(states))
	for i, state := range states {
		if parents[i] = h.readable(state); parents[i] == nil {
			return nil, nil //nolint:nilnil // as above
		}
	}
	return aggregate.Union(parents...), nil
}

// parentsStates returns the states at the parents' ends that their rows have; nil unless all do.
func (h *holding) parentsStates(ctx context.Context) ([][]byte, error) {
	states := make([][]byte, len(h.first.Parents))
	for i, id := range h.first.Parents {
		l, err := h.run.table.Get(ctx, id)
		if errors.Is(err, lease.ErrLeaseNotFound) || errors.Is(err, lease.ErrUnreadableRow) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		var at runnel.Position
		if states[i], at = h.run.states.of(ctx, l); at != runnel.End() {
			return nil, nil
		}
	}
	return states, nil
}

// readable makes a filter from a state of a row; nil if it cannot be used. The filter can be made
// again from the stream, so that is logged, and no reason to stop.
func (h *holding) readable(state []byte) *aggregate.Filter {
	filter, err := h.restore(state)
	if err != nil {
		h.run.failed(h.first.Key, fmt.Errorf("it is made again from the stream: %w", err))
		return nil
	}
	return filter
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
