package consumer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/pages"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/sink"
)

// once finds out when the work that was there at a worker's start is done. A shard that was open at
// the start is settled when a worker has processed it up to its tip, or past the last record that
// arrived before the start, or to its end. A shard that was closed at the start is settled at its
// end. Shards that came later hold later records only.
//
// The worker's own readers report its own shards. For a shard of another worker, probe reads from
// that worker's checkpoint. A worker gives a settled shard back, so no two workers wait for each
// other's leases.
type once struct {
	since time.Time // the stream's time at the start, or a little later
	// old are the shards that were there at the start. The value is true for shards that were
	// closed: these are settled only at their ends, since a reader at such a shard's tip need
	// not have seen its end.
	old map[runnel.ShardID]bool

	// These belong to the coordinator.
	done     map[runnel.ShardID]bool
	settled  []runnel.ShardID // all shards of the table when all were settled, last time
	finished bool
}

func newOnce(since time.Time) *once {
	return &once{since: since, done: map[runnel.ShardID]bool{}}
}

func (o *once) isFinished() bool { return o != nil && o.finished }

// begin notes the shards that are there at the start.
func (o *once) begin(leases []lease.Lease, shards []runnel.Shard) {
	if o == nil || o.old != nil {
		return
	}
	o.old = make(map[runnel.ShardID]bool, len(shards))
	for _, l := range leases {
		o.old[l.Key] = true // closed, unless it is still listed as open
	}
	for _, s := range shards {
		o.old[s.ID] = !s.Open()
	}
}

// wants reports whether the shard belongs to the work.
func (o *once) wants(shard runnel.ShardID) bool {
	if o == nil {
		return true
	}
	_, old := o.old[shard]
	return old
}

// caughtUp reports whether a read has passed the last record that was there at the start.
func (o *once) caughtUp(shard runnel.ShardID, p page) bool {
	if o == nil || p.ended || o.old[shard] {
		return false
	}
	return p.behind == 0 || p.newest.After(o.since)
}

// unsettled returns the leases of shards that still have work, or sets once.finished. It takes two
// looks at the table: one look may see a parent's end and miss its children, which were created
// before.
//
// The shards of rows that cannot be read are left alone, and so are their descendants. When the
// others are settled, an error reports the rows.
func (r *run) unsettled(
	ctx context.Context, now time.Time, view []lease.Sighting, skipped []lease.Skipped,
) ([]lease.Sighting, error) {
	o := r.once
	view = readable(view, skipped)
	for _, s := range o.filter(view) {
		alive := s.Owner != "" && s.Owner != r.cfg.WorkerID && !s.Expired(now, r.cfg.Failover)
		if alive && r.held[s.Key] == nil && r.probe(ctx, s.Lease) {
			o.done[s.Key] = true
		}
	}
	left := o.filter(view)
	if len(left) > 0 || len(r.held) > 0 {
		o.settled = nil
		return left, nil
	}
	keys := make([]runnel.ShardID, 0, len(view)+len(skipped))
	for _, s := range view {
		keys = append(keys, s.Key)
	}
	for _, s := range skipped {
		keys = append(keys, runnel.ShardID(s.Key))
	}
	over := len(keys) > 0 && slices.Equal(keys, o.settled)
	if o.settled = keys; !over {
		return left, nil
	}
	for _, s := range skipped {
		if o.wants(runnel.ShardID(s.Key)) {
			return nil, rowError(r.table.Name(), skipped)
		}
	}
	// Check that the settled shards belong to this stream.
	if err := r.sameStream(ctx); err != nil {
		return nil, err
	}
	o.finished = true
	return left, nil
}

// filter returns the leases that are not settled.
func (o *once) filter(view []lease.Sighting) []lease.Sighting {
	var left []lease.Sighting
	for _, s := range view {
		if !s.Ended() && o.wants(s.Key) && !o.done[s.Key] {
			left = append(left, s)
		}
	}
	return left
}

// probe reads on from another worker's checkpoint, and reports whether no record that was there at
// the start follows it.
func (r *run) probe(ctx context.Context, l lease.Lease) bool {
	const reads, records = 8, 2 // the record at the checkpoint, and the one after it
	at, ok := r.reached(ctx, l)
	if !ok {
		return false
	}
	cfg := r.pages(l.Key, r.originOf(l), at, records)
	cfg.Gaps, cfg.Complete, cfg.Parents = true, l.Complete, l.Parents
	cfg.Attempts, cfg.Pace = 1, pages.Pace{} // the coordinator waits for it
	f := r.newFetcher(pages.New(cfg), newReading(l.Key, at))
	for range reads {
		p, err := f.read(ctx)
		switch {
		case err != nil:
			if ctx.Err() == nil && !throttled(err) {
				r.failed(l.Key, err)
			}
			return false
		case p.gap != nil:
			return false // the shard's reader reports the error
		case p.read > 0:
			return p.oldest.After(r.once.since)
		case p.caughtUp || p.ended:
			return p.caughtUp
		}
	}
	return false
}

// reached returns the position up to which another worker's shard has been processed. The data of a
// sink.Lister may have gone back behind the lease's checkpoint, so the sink is asked. It returns
// false if that is not known, or a parent has not been processed to its end.
func (r *run) reached(ctx context.Context, l lease.Lease) (runnel.Position, bool) {
	if _, ok := r.sink.(sink.Lister); !ok {
		return l.Processed(), true
	}
	writer, err := r.sink.Open(ctx, sink.Shard{
		Stream: r.stream.Name, Created: r.stream.Created, ID: l.Key, Parents: l.Parents,
		Checkpoint: l.Processed(), Token: l.Token,
	})
	if err == nil {
		defer func() { _ = writer.Close() }() // it has written nothing
		at := writer.Committed().End
		return at, !at.Less(l.Processed())
	}
	if parent := new(sink.ParentError); !errors.As(err, &parent) && ctx.Err() == nil {
		r.failed(l.Key, err)
	}
	return runnel.Position{}, false
}
