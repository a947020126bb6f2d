package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/runnel-stream/runnel"
)

// delivery passes a fetcher's pages to a shard's form, in order.
type delivery struct {
	of       *holding
	form     form
	progress *progress
	at       runnel.Position // where reading begins
	open     reading         // of the records after at; belongs to the fetcher while one runs
}

// run delivers from d.at on until the shard's end, the worker's stop, or a failure. After a
// *sink.MovedError it can be run again from the error's position.
func (d *delivery) run(ctx context.Context) (ending, []runnel.Shard, error) {
	f := d.of.run.fetch(ctx, d.of, d.at, d.open)
	defer f.stop()
	var last *page // no other one is read
	idle := d.newIdle()
	defer idle.stop()
	for {
		drained, err := d.form.commit(ctx)
		if err != nil {
			return d.failed(ctx, err)
		}
		if last != nil && drained {
			return d.finish(ctx, last)
		}
		paused, changed := d.of.control.isPaused()
		next := f.pages
		if paused || last != nil {
			next = nil
		}
		select {
		case <-ctx.Done():
			return dropped, nil, context.Cause(ctx)
		case <-d.of.stopping:
			if ctx.Err() != nil { // killed: not even a flush
				return dropped, nil, context.Cause(ctx)
			}
			return stopped, nil, d.form.flush(ctx)
		case <-changed:
		case <-d.form.wake():
		case <-idle.timer.C:
			err = idle.call(ctx, paused)
		case p := <-next:
			if p.ended || p.caughtUp {
				last = &p
			}
			err = d.take(ctx, &p)
			if len(p.records) > 0 {
				idle.reset()
			}
		}
		if err != nil {
			return d.failed(ctx, err)
		}
	}
}

// failed ends the delivery. Records in work at a hand-over still count.
func (d *delivery) failed(ctx context.Context, err error) (ending, []runnel.Shard, error) {
	if errors.Is(err, errStopping) && ctx.Err() == nil {
		return stopped, nil, d.form.flush(ctx)
	}
	return 0, nil, err
}

// finish ends the delivery behind its last page.
func (d *delivery) finish(ctx context.Context, last *page) (ending, []runnel.Shard, error) {
	if !last.ended {
		return caughtUp, nil, d.form.flush(ctx)
	}
	if err := d.form.end(ctx); err != nil {
		return d.failed(ctx, err)
	}
	return finished, last.children, nil
}

// take passes a page to the form.
func (d *delivery) take(ctx context.Context, p *page) error {
	if p.gap != nil {
		if _, ok := d.form.(*sinkForm); ok {
			// The batches that wait are committed with the state before this page.
			if err := d.form.flush(ctx); err != nil {
				return err
			}
		}
		d.of.reported(p.gap)
		if err := d.of.passGap(ctx, p.gap); err != nil {
			return err
		}
	}
	if p.ended {
		d.of.endComplete = p.complete
	}
	d.of.meter.take(p)
	d.progress.take(p)
	return d.form.take(ctx, p)
}

// settled reports a page whose records have been processed, or that a sink has taken.
func (h *holding) settled(p *page) {
	p.account.free(p.memory)
	h.meter.settle(p)
	h.keeper.measure(p.bytes)
	for _, void := range p.voided {
		h.event(Event{
			Kind: EventVoided, Position: void.Position, Records: void.Records,
			Dropped: void.Dropped, Err: void,
		})
	}
	if p.read > 0 {
		h.event(Event{
			Kind: EventDelivered, Position: p.through, Records: len(p.records), Bytes: p.bytes,
			Doubles: p.doubles, Malformed: p.malformed, Unfiltered: p.unfiltered,
			Behind: p.behind,
		})
	}
}

// idle calls a form that wants to know that no record comes.
type idle struct {
	form  idler // nil if it does not
	timer *time.Timer
}

func (d *delivery) newIdle() *idle {
	i := &idle{timer: time.NewTimer(idleInterval)}
	if i.form, _ = d.form.(idler); i.form == nil {
		i.timer.Stop()
	}
	return i
}

func (i *idle) call(ctx context.Context, paused bool) error {
	defer i.reset()
	if paused {
		return nil
	}
	return i.form.idle(ctx)
}

func (i *idle) reset() {
	if i.form != nil {
		i.timer.Reset(idleInterval)
	}
}

func (i *idle) stop() { i.timer.Stop() }
