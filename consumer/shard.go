package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/sink"
)

// ending is the way in which the work on a held lease ended.
type ending int

const (
	dropped  ending = iota // lease lost, or worker killed: no further write
	stopped                // the worker is being stopped: handed over
	caughtUp               // Config.Once: as far as asked; handed over
	finished               // the shard has ended
)

// holding is a lease that the worker holds, from the taking to the handing over, together with the
// reading of its shard. It runs in a goroutine of its own.
type holding struct {
	run    *run
	first  lease.Lease // as it was taken
	keeper *keeper

	number  int64 // of the run's holdings
	control control
	meter   meter
	calls   calls        // of the handler
	retries atomic.Int64 // attempts of the handler that failed

	// stopping is closed when the shard is to be handed over, with to set before. See depart.
	stopping chan struct{}
	leaving  sync.Once
	to       departure

	// These are set when the holding has ended, for the coordinator.
	ending  ending
	adopted []adoption // leases of children that are now held
	deleted bool       // the row was deleted

	seeks   int             // before the session
	state   []byte          // stored at some time, of a handler's reader; nil if there is none
	stateAt runnel.Position // the state's

	// unended is true if this is a parent that is read to its end in the sink, under its child's
	// lease: see ending.go. The keeper is then the child's.
	unended bool

	children []runnel.ShardID // the shard's children, once they are known
	atEnd    []byte           // state of a handler's reader there; nil if no child needs it
	// endComplete is the time up to which the shard was complete at its end: its children's records
	// arrived later.
	endComplete time.Time
}

// adoption is a lease that was created with this worker as its owner, and the time at which that
// was sent.
type adoption struct {
	lease lease.Lease
	sent  instant
}

func (r *run) newHolding(held lease.Lease, renewed instant) *holding {
	h := &holding{
		run: r, first: held, keeper: r.newKeeper(held, renewed), stopping: make(chan struct{}),
	}
	h.number = r.figures.number()
	h.meter.hold(held, renewed)
	h.calls.all, h.keeper.behind = &r.busy, h.behind
	h.keeper.asked = func(a lease.Ask) { h.depart(departure{to: a.Worker, byHand: a.ByHand}) }
	h.keeper.paused = h.rowPaused
	h.keeper.wrote = func(c sink.Committed) {
		h.event(Event{Kind: EventCheckpointed, Position: c.End})
	}
	return h
}

func (h *holding) event(e Event) {
	e.ShardID = h.first.Key
	h.meter.observe(&e)
	h.run.observe(e)
}

// outcome is how the reading of a shard ended.
type outcome struct {
	how      ending
	children []runnel.Shard
}

// work reads the shard until its end, the loss of the lease, or until it is to be handed over. life
// is cancelled when the worker is to drop its work.
func (h *holding) work(life context.Context) {
	ctx, cancel := context.WithCancelCause(life)
	defer cancel(nil)
	h.rowPaused(h.first.Paused)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		if err := h.keeper.run(ctx); err != nil {
			cancel(err)
		}
		if ctx.Err() != nil && !cutShort(ctx) {
			h.keeper.close() // the lease is lost, or the worker is killed
		}
	}()
	defer h.keeper.close()
	var read outcome
	done := make(chan struct{})
	go func() {
		defer close(done)
		read.how, read.children = h.process(ctx)
	}()
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { h.limit(ctx, cancel, over) })
	o, returned := outcome{how: stopped}, h.await(ctx, done)
	if returned {
		o = read
	}
	if o.how == finished {
		h.createChildren(ctx, o.children)
	}
	to := h.successor(ctx, o.how)
	close(h.keeper.quit)
	<-kept
	h.ending = h.handOver(ctx, o.how, to)
	h.keeper.close()
	<-done // if it has not returned, the shard is read elsewhere by now
	close(over)
	watch.Wait()
}

// process delivers the shard, in one session or more: another one begins after a failure, where the
// shard was sought to, and when a stopped shard is resumed.
func (h *holding) process(ctx context.Context) (ending, []runnel.Shard) {
	defer h.control.close()
	if how, ok := h.awaitParents(ctx); !ok {
		return how, nil
	}
	h.meter.begin()
	for attempt := 1; ; attempt++ {
		began := time.Now()
		how, children, err := h.sessionAt(ctx)
		var halt *haltError
		switch {
		case ctx.Err() != nil:
			return dropped, nil
		case err == nil:
			if h.control.end() {
				return how, children
			}
			attempt = 0 // it was sought at the last moment
			continue
		case h.isStopping():
			// The last commit is handed over.
			return stopped, nil
		case errors.Is(err, errSought):
			attempt = 0
			continue
		case errors.As(err, &halt):
			if !h.halt(ctx, halt) {
				return stopped, nil // or dropped: handOver sees it
			}
			attempt = 0
			continue
		}
		h.retried()
		h.run.failed(h.first.Key, err)
		if time.Since(began) > longestBackoff {
			attempt = 1
		}
		if !retry.WaitOr(ctx, backoff(attempt, longestBackoff), h.stopping) {
			return stopped, nil // or dropped: handOver sees it
		}
	}
}

// halt stops the shard by its ErrorPolicy, until it is resumed.
func (h *holding) halt(ctx context.Context, why *haltError) bool {
	h.run.cfg.Logger.Error("the shard stops: a record is out of attempts", "worker",
		h.run.cfg.WorkerID, "stream", h.run.cfg.Stream, "shard", string(h.first.Key),
		"at", why.at.String(), "error", why.err)
	h.control.halt(why) // before the event, whose receiver may resume the shard
	h.event(Event{Kind: EventShardStopped, Position: why.at, Err: why})
	if h.run.cfg.Once {
		h.run.giveUp(fmt.Errorf("shard %s: %w", h.first.Key, why))
	}
	return h.control.awaitResume(ctx, h.stopping)
}

// awaitParents returns once the shard's parents have been processed to their ends.
func (h *holding) awaitParents(ctx context.Context) (ending, bool) {
	for attempt := 1; ; attempt++ {
		ended, err := h.run.allEnded(ctx, h.first.Parents)
		if ended {
			return 0, true
		}
		if err != nil && ctx.Err() == nil {
			h.run.failed(h.first.Key, err)
		}
		pause := backoff(attempt, min(time.Second, h.run.cfg.Failover/4))
		if !retry.WaitOr(ctx, pause, h.stopping) {
			return stopped, false
		}
	}
}

// sessionAt runs a session, which ends with errSought if the shard is sought meanwhile.
func (h *holding) sessionAt(ctx context.Context) (ending, []runnel.Shard, error) {
	session, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stuck := h.watchCalls(session)
	defer stuck()
	p := &progress{of: h}
	to, sought := h.control.begin(cancel, p)
	if h.seeks = p.seeks; sought {
		h.goTo(to)
	}
	how, children, err := h.session(ctx, session, p)
	if err != nil && errors.Is(context.Cause(session), errSought) {
		err = errSought
	}
	return how, children, err
}

// goTo makes the next session begin at a position, as if the row had never had another one.
func (h *holding) goTo(to runnel.Position) {
	l := &h.first
	if l.Checkpoint = to; to == runnel.Start() {
		l.Checkpoint.Sequence = runnel.TrimHorizon
	}
	l.Token, l.State, l.StateAt, l.From = "", nil, runnel.Position{}, time.Time{}
	h.run.gaps.forget(l.Key)
	h.event(Event{Kind: EventSought, Position: to})
}

// session opens the shard's form and delivers until the shard's end, the worker's stop or a
// failure. It begins at the sink's position, not at the checkpoint.
func (h *holding) session(
	outer, ctx context.Context, p *progress,
) (how ending, children []runnel.Shard, err error) {
	ctx = sink.WithStopping(ctx, h.stopping)
	known := h.sinkShard()
	p.start(known.Checkpoint)
	form, at, err := h.openForm(ctx, known, p)
	if form == nil && errors.Is(err, errStopping) {
		return stopped, nil, nil
	}
	if form == nil {
		return 0, nil, err
	}
	defer func() {
		closing := form.close(ctx, h.reason(outer, ctx, how, err))
		if err == nil && closing != nil {
			err = closing
		}
	}()
	if err == nil {
		err = p.commit(at) // it may be ahead of the row
	}
	if err != nil {
		return 0, nil, err
	}
	writes, isSink := form.(*sinkForm)
	d := &delivery{of: h, form: form, progress: p}
	for {
		if d.at = at.End; d.at == runnel.End() {
			return finished, nil, nil // the children are in the stream's list
		}
		if d.open, err = h.readingAt(ctx, form, at); err != nil {
			return 0, nil, err
		}
		h.event(Event{Kind: EventShardStarted, Position: d.at})
		how, children, err = d.run(ctx)
		if !isSink && err == nil && how == finished {
			if known := h.keeper.knows(); known != nil {
				h.atEnd, _ = known.MarshalBinary() // it returns no error
			}
		}
		var moved *sink.MovedError
		if !isSink || !errors.As(err, &moved) {
			return how, children, err
		}
		h.event(Event{Kind: EventMoved, Position: moved.To.End})
		if err := p.move(moved.To); err != nil {
			return 0, nil, err
		}
		writes.now = moved.To
		if at = moved.To; h.isStopping() && at.End != runnel.End() {
			return stopped, nil, nil
		}
	}
}

// openForm opens the sink's writer, or makes the form of the handler, and returns the commit behind
// which it wants the records. A form that it returns with an error must be closed.
func (h *holding) openForm(
	ctx context.Context, known sink.Shard, p *progress,
) (form, sink.Committed, error) {
	if h.run.cfg.Sink == nil {
		form, err := h.newForm(ctx, known.Checkpoint, p)
		return form, sink.Committed{End: known.Checkpoint}, err
	}
	writer, err := h.openWriter(ctx, known)
	if err != nil {
		return nil, sink.Committed{}, fmt.Errorf("open the sink: %w", err)
	}
	at := writer.Committed()
	return &sinkForm{of: h, progress: p, writer: writer, now: at}, at, nil
}

// sinkShard returns the shard for the sink as the row is now, including the keeper's checkpoints,
// since a writer may be opened again.
func (h *holding) sinkShard() sink.Shard {
	at := sink.Committed{End: h.first.Processed(), Token: h.first.Token}
	if c := h.keeper.lastPosted(); c.End != runnel.Start() && !h.unended {
		at = c
	}
	return sink.Shard{
		Stream: h.run.stream.Name, Created: h.run.stream.Created, ID: h.first.Key,
		Parents: h.first.Parents, Checkpoint: at.End, Token: at.Token,
	}
}
