package consumer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/sink"
)

// openerAt returns the opener of what follows a commit, with what is known of the units before.
//
// A sink has kept that in its commit, so that whoever goes on there judges alike; a shard that
// it has nothing of begins with what its parents' commits know. A handler's commit is the lease
// row's checkpoint, and keeps nothing: there only a child of shards that this worker has ended
// can begin with what it knew then. Where nobody has kept it, it is read from the stream again.
func (h *holding) openerAt(
	ctx context.Context, writer sink.Writer, c sink.Committed,
) (o opener, err error) {
	o = newOpener(h.first.Key, c.End)
	o.void = h.cfg.Void
	if o.keys, err = h.hashRange(ctx); err != nil || h.cfg.KeepDoubles {
		return o, err
	}
	if _, ok := writer.(*handlerWriter); ok {
		o.filter, err = h.recall(ctx, c.End)
		return o, err
	}
	if c.End == runnel.Start {
		o.filter, err = h.inherit(ctx, c.Parents)
	} else {
		o.filter, err = h.restore(c.State)
	}
	if err == nil {
		o.mirror = newMirror(o.filter, len(c.State) > 0)
	}
	return o, err
}

// recall returns what is known at a position of a handler's shard.
func (h *holding) recall(ctx context.Context, at runnel.Position) (*aggregate.Filter, error) {
	if at == runnel.Start && originOf(h.first).Word == runnel.TrimHorizon {
		// All parents have ended, as their rows say: what this worker knew then is there.
		if states := h.ends.begin(h.first.Key, h.first.Parents); len(states) > 0 {
			parents, err := h.restoreAll(states)
			return h.union(parents), err
		}
	}
	return h.rebuild(ctx, at)
}

// hashRange returns the shard's range: the lease's, or, if another program made the row without
// it, the listing's. A shard that is not listed has no records to check.
func (h *holding) hashRange(ctx context.Context) (keyspace.Range, error) {
	if h.first.Range != nil {
		return *h.first.Range, nil
	}
	listed, err := h.listing(ctx)
	if s, ok := listed[h.first.Key]; ok && err == nil {
		return s.Range, nil
	}
	return keyspace.All, err
}

// restore makes a filter of a state; nil is that of a filter that has not met any unit.
func (h *holding) restore(state []byte) (*aggregate.Filter, error) {
	filter := &aggregate.Filter{H: h.cfg.Horizon}
	if len(state) == 0 {
		return filter, nil
	}
	if err := filter.UnmarshalBinary(state); err != nil {
		return nil, fmt.Errorf("shard %s: what was kept of the reader's state is not usable, "+
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

// union makes the filter that a child begins with of those of its parents' ends.
func (h *holding) union(parents []*aggregate.Filter) *aggregate.Filter {
	filter := aggregate.Union(parents...)
	filter.H = h.cfg.Horizon
	return filter
}

// inherit returns what is known at the shard's beginning, or where the application begins in
// it: all that the parents' ends know. Of a parent that has left no state, and where none is
// known, that is read again.
func (h *holding) inherit(ctx context.Context, states [][]byte) (*aggregate.Filter, error) {
	parents, err := h.restoreAll(states)
	if err != nil {
		return nil, err
	}
	unknown := func(state []byte) bool { return len(state) == 0 }
	if len(states) == 0 || slices.ContainsFunc(states, unknown) {
		filter, err := h.rebuild(ctx, runnel.Start)
		if err != nil {
			return nil, err
		}
		parents = append(parents, filter)
	}
	return h.union(parents), nil
}

// listing returns the stream's shards by their ids, as listed at some time after this shard was
// made: those that it came from do not change.
func (h *holding) listing(ctx context.Context) (map[runnel.ShardID]shardmap.Shard, error) {
	for _, age := range []time.Duration{h.cfg.AuditInterval, 0} {
		shards, err := h.shards.Shards(ctx, age)
		if err != nil {
			return nil, err
		}
		byID := make(map[runnel.ShardID]shardmap.Shard, len(shards))
		for _, s := range shards {
			byID[s.ID] = s
		}
		if _, ok := byID[h.first.Key]; ok || age == 0 {
			return byID, nil
		}
	}
	return nil, nil
}
