package consumer

import (
	"context"
	"encoding/binary"
	"fmt"
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
// it has nothing of begins with what its parents' commits know. Where nobody has kept it, as
// with handlers, whose commit is the lease row's checkpoint, it is read from the stream again.
func (h *holding) openerAt(
	ctx context.Context, writer sink.Writer, c sink.Committed,
) (o opener, err error) {
	o = newOpener(h.first.Key, c.End)
	o.void = h.cfg.Void
	if o.keys, err = h.hashRange(ctx); err != nil || h.cfg.KeepDoubles {
		return o, err
	}
	if _, ok := writer.(*handlerWriter); ok {
		o.filter, err = h.rebuild(ctx, c.End)
		return o, err
	}
	if c.End == runnel.Start {
		o.seen, err = h.inherit(ctx, c.Parents)
	} else {
		o.filter, err = h.restore(c.State)
		o.saved = c.State
	}
	o.keep = true
	return o, err
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
		return nil, fmt.Errorf("shard %s: what the sink has kept of the reader's state is not "+
			"usable, perhaps since a newer program wrote it: %w", h.first.Key, err)
	}
	return filter, nil
}

// inherit returns what is known at the shard's beginning, or where the application begins in
// it: all that the parents' ends know. Of a parent that has left no state, and where none is
// known, that is read again.
func (h *holding) inherit(ctx context.Context, states [][]byte) (s seen, err error) {
	again := len(states) == 0
	var parents []*aggregate.Filter
	for _, state := range states {
		filter, err := h.restore(state)
		if err != nil {
			return s, err
		}
		parents = append(parents, filter)
		again = again || len(state) == 0
	}
	if again {
		filter, err := h.rebuild(ctx, runnel.Start)
		if err != nil {
			return s, err
		}
		parents = append(parents, filter)
	}
	s.filter = aggregate.Union(parents...)
	s.filter.H = h.cfg.Horizon
	if s.saved, err = s.filter.MarshalBinary(); len(s.saved) <= longestEmpty {
		s.saved = nil
	}
	return s, err
}

// longestEmpty is the most bytes that a filter's state has without any producer: the version,
// the time and their number. A producer alone has an id of 16.
const longestEmpty = 1 + binary.MaxVarintLen64 + 1

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
