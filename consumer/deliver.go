package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/sink"
)

// delivery passes a fetcher's pages to a sink's writer, in order.
type delivery struct {
	of     *holding
	writer sink.Writer
	at     runnel.Position // where reading begins
	last   runnel.Position // the last commit announced
	open   reading         // of the records after at; belongs to the fetcher while one runs

	through  runnel.Position // the position that the written batches reach
	complete time.Time       // page.complete there
	steps    []step          // of a handler's filter, since the last commit
}

// step is what a page changes in a handler's filter.
type step struct {
	base   *aggregate.Filter // the filter before the page's first unit, if it was made there
	change []byte
}

// run delivers from d.at on until the shard's end, the worker's stop, or a failure. After a
// *sink.MovedError it can be run again from the error's position.
func (d *delivery) run(ctx context.Context) (ending, []runnel.Shard, error) {
	f := d.of.run.fetch(ctx, d.of.first, d.at, d.open, d.of.completeTo())
	defer f.stop()
	for {
		var p page
		select {
		case <-ctx.Done():
			return dropped, nil, context.Cause(ctx)
		case <-d.of.stopping:
			if ctx.Err() != nil { // killed: not even a flush
				return dropped, nil, context.Cause(ctx)
			}
			return stopped, nil, d.commit(ctx, "flush", d.writer.Flush)
		case p = <-f.pages:
		}
		if err := d.write(ctx, p); err != nil {
			return 0, nil, err
		}
		switch {
		case p.ended:
			return finished, p.children, d.commit(ctx, "end", d.writer.End)
		case p.caughtUp:
			return caughtUp, nil, d.commit(ctx, "flush", d.writer.Flush)
		}
	}
}

// write passes a page to the writer. A page without records is passed, too, so that the writer may
// commit by age and its position moves beyond dropped records.
func (d *delivery) write(ctx context.Context, p page) error {
	if p.gap != nil {
		// The batches that wait are committed with the state before this page.
		if err := d.commit(ctx, "flush", d.writer.Flush); err != nil {
			return err
		}
		d.reported(p.gap)
	}
	if h, ok := d.writer.(*handlerWriter); ok {
		h.behind = p.behind
	}
	batch := sink.Batch{Records: p.records, Through: p.through, Gap: p.gap}
	if err := d.open.mirror.batch(&batch, &p); err != nil {
		return err
	}
	if err := d.of.keeper.ensure(ctx); err != nil {
		return err
	}
	if p.base != nil || len(p.change) > 0 {
		d.steps = append(d.steps, step{p.base, p.change})
	}
	c, err := d.writer.Write(ctx, batch)
	if err != nil {
		return fmt.Errorf("write to the sink: %w", err)
	}
	d.of.keeper.measure(p.bytes, p.behind)
	d.through, d.complete = p.through, p.complete
	if p.ended {
		d.of.endComplete = p.complete
	}
	for _, void := range p.voided {
		d.of.event(Event{
			Kind: EventVoided, Position: void.Position, Records: void.Records, Err: void,
		})
	}
	if p.read > 0 {
		d.of.event(Event{
			Kind: EventDelivered, Position: p.through, Records: len(p.records), Bytes: p.bytes,
			Doubles: p.doubles, Malformed: p.malformed, Unfiltered: p.unfiltered,
			Behind: p.behind,
		})
	}
	return d.committed(c)
}

func (d *delivery) commit(
	ctx context.Context, what string, do func(context.Context) (sink.Committed, error),
) error {
	c, err := do(ctx)
	if err != nil {
		return fmt.Errorf("%s the sink's writer: %w", what, err)
	}
	return d.committed(c)
}

// committed passes the sink's last commit to the keeper, for the lease row.
func (d *delivery) committed(c sink.Committed) (err error) {
	defer d.completed(c)
	if c.End == d.last {
		return nil
	}
	if d.of.unended { // the keeper's row is the child's
		d.last = c.End
		d.of.event(Event{Kind: EventCommitted, Position: c.End})
		return nil
	}
	if c.End.Less(d.last) {
		// The sink has gone back. What is known of the records behind the old position says nothing
		// of those behind this one.
		d.of.keeper.complete(d.of.run.began())
	}
	d.last = c.End
	d.of.event(Event{Kind: EventCommitted, Position: c.End})
	steps := d.steps
	if d.steps = nil; !d.handled() {
		steps = nil // the sink has the filter's state
	}
	if c.End != runnel.End() { // that one is written with the children
		return d.of.keeper.post(c, steps)
	}
	return d.of.keeper.ended(c.Token, steps)
}

// handled reports whether a handler takes the records. All that was written is then committed.
func (d *delivery) handled() bool {
	_, ok := d.writer.(*handlerWriter)
	return ok
}

// completed passes on the time up to which the shard is complete, if every written batch has been
// committed. It comes after the checkpoint to which it belongs.
func (d *delivery) completed(c sink.Committed) {
	if c.End == d.through && !d.complete.IsZero() && !d.of.unended {
		d.of.keeper.complete(d.complete)
	}
}
