package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/sink"
)

// The lease table says that a shard's parents have ended before the shard is read. A sink may say
// otherwise, since its data is the truth and may have gone back: a database was restored from a
// backup, or another one has its place. Then the sink returns a *sink.ParentError, and the holder
// of the child's lease ends the parent in the sink, whose own parents may be unended as well. The
// holders of two children may do the same at once: the sink's commit is the fence.

// openWriter opens the sink's writer of the holding's shard, after it has ended those parents that
// the sink knows as unended. It returns errStopping if the shard is to be handed over before that.
func (h *holding) openWriter(ctx context.Context, known sink.Shard) (sink.Writer, error) {
	for range len(known.Parents) + 1 {
		writer, err := h.run.sink.Open(ctx, known)
		open := new(sink.ParentError)
		if !errors.As(err, &open) {
			return writer, err
		}
		if ending := h.endParent(ctx, open); ending != nil {
			return nil, errors.Join(err, ending)
		}
	}
	return h.run.sink.Open(ctx, known)
}

// endParent ends a parent in the sink: it reads the rest of it, or closes it with a gap if the
// stream no longer has it.
func (h *holding) endParent(ctx context.Context, open *sink.ParentError) error {
	shards, err := h.run.shards.Shards(ctx, 0)
	if err != nil {
		return err
	}
	listed := make(map[runnel.ShardID]runnel.Shard, len(shards))
	for _, s := range shards {
		listed[s.ID] = s
	}
	if parent, ok := listed[open.Parent]; ok {
		return h.readParent(ctx, parent, open.End)
	}
	if len(shards) == 0 {
		return nil // there is no such answer of a stream that has a shard
	}
	if err := h.run.sameStream(ctx); err != nil {
		return err
	}
	if open.End == runnel.Start() {
		// Either the application began behind this shard, or the sink has gone back to a time
		// before it. In the second case there was a shard then that the sink has not ended.
		if err := h.closeUnended(ctx, listed); err != nil {
			return err
		}
	}
	return h.closeShard(ctx, open.Parent)
}

// readParent reads a parent to its end, from where the sink's last commit of it ends. If there is
// none, it begins where the application begins, and finds no record if the shard had ended by then.
func (h *holding) readParent(ctx context.Context, s runnel.Shard, from runnel.Position) error {
	of := lease.NewLease(s, h.run.origin)
	parent := &holding{
		run: h.run, first: of, keeper: h.keeper, stopping: h.stopping, unended: true,
	}
	if _, ok := h.run.quiet.may(s.ID, time.Now()); ok { // it may stop at a gap, and come again
		h.run.cfg.Logger.Info("a parent is read to its end first, since the sink has not ended "+
			"it: the application begins after it, or the sink's data was restored", "worker",
			h.run.cfg.WorkerID, "stream", h.run.cfg.Stream, "shard", string(s.ID), "from",
			from.String(), "child", string(h.first.Key))
	}
	end, err := h.obeyPauses(ctx, parent)
	if err != nil {
		return err
	}
	defer end()
	how, _, err := parent.sessionAt(ctx)
	if err == nil && how != finished {
		err = errStopping
	}
	return err
}

// closeUnended closes the shards that the sink has begun and not ended, and that the stream no
// longer has.
func (h *holding) closeUnended(
	ctx context.Context, listed map[runnel.ShardID]runnel.Shard,
) error {
	lister, ok := h.run.sink.(sink.Lister)
	if !ok {
		return nil
	}
	unended, err := lister.Unended(ctx, h.run.stream.Name, h.run.stream.Created)
	if err != nil {
		return err
	}
	for _, id := range unended {
		if _, ok := listed[id]; ok {
			continue
		}
		if err := h.closeShard(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// closeShard ends a shard in the sink that the stream no longer has. It leaves a gap if the sink
// has begun the shard.
func (h *holding) closeShard(ctx context.Context, id runnel.ShardID) (err error) {
	writer, err := h.run.sink.Open(ctx, sink.Shard{
		Stream: h.run.stream.Name, Created: h.run.stream.Created, ID: id,
	})
	if err != nil {
		return err
	}
	defer func() { _ = writer.Close() }() // it has committed, or its error is returned
	c := writer.Committed()
	switch c.End {
	case runnel.End():
		return nil
	case runnel.Start():
		_, err = writer.End(ctx)
		return err
	}
	gap := goneGap(c.End)
	h.run.reportGap(id, gap, "a shard ends with a gap: the stream no longer has it")
	batch := sink.Batch{Through: c.End, State: func() []byte { return c.State }, Gap: gap}
	if _, err = writer.Write(ctx, batch); err == nil {
		_, err = writer.End(ctx)
	}
	return err
}

// completeTo returns the time up to which the holding's shard is complete where reading begins.
func (h *holding) completeTo() time.Time {
	if h.unended {
		return h.run.began()
	}
	return h.keeper.completeTo()
}

// began returns the earliest arrival of a record that the application may have to read.
func (r *run) began() time.Time {
	if at := r.origin.Time(); at.After(r.stream.Created) {
		return at
	}
	return r.stream.Created
}
