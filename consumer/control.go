package consumer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/runnel-stream/runnel"
)

// errSought is the cause of a handler's cancelled context if the shard was sought.
var errSought = errors.New("the shard was sought to another position")

// control holds the operators' wishes for a held shard. It is safe for concurrent use.
type control struct {
	mu      sync.Mutex
	paused  bool
	byRow   bool             // by the lease row
	halted  error            // a *haltError, until the shard is resumed
	sought  *runnel.Position // where the next session begins
	seeks   int
	cancel  context.CancelCauseFunc // of the session
	of      *progress               // of the session
	ended   bool                    // the shard's reading is over for good
	changed chan struct{}           // closed and replaced with each change; nil if nothing waits

	shown atomic.Pointer[shown] // nil before the first change
}

// shown is the part of a control that Status shows. It needs no lock, since Status may be called
// under those that control waits for.
type shown struct {
	paused bool
	halted error
}

// change makes a change, and wakes all that wait for one.
func (c *control) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	c.shown.Store(&shown{c.paused || c.byRow, c.halted})
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// wait returns a channel that is closed at the next change. The lock is held.
func (c *control) wait() <-chan struct{} {
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// isPaused reports whether no record may be handed out, and returns a channel that is closed at the
// next change.
func (c *control) isPaused() (bool, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused || c.byRow, c.wait()
}

// gate waits as long as the shard is paused. It returns errStopping if no call is to be begun any
// more: stopping or quit is closed.
func (c *control) gate(ctx context.Context, stopping, quit <-chan struct{}) error {
	for {
		paused, changed := c.isPaused()
		if !paused {
			return nil
		}
		select {
		case <-changed:
		case <-stopping:
			return errStopping
		case <-quit:
			return errStopping
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin notes the beginning of a session, which a seek ends by cancel. The session begins at a
// position that was sought, if there is one.
func (c *control) begin(
	cancel context.CancelCauseFunc, of *progress,
) (to runnel.Position, sought bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel, c.of, of.seeks = cancel, of, c.seeks
	if c.sought == nil {
		return runnel.Position{}, false
	}
	to, c.sought = *c.sought, nil
	return to, true
}

// seek asks for a session that begins at a position, and calls rewind after the present one has
// made its last commit. A shard that an ErrorPolicy stopped is resumed. It returns an error if
// there will be no other session.
func (c *control) seek(to runnel.Position, rewind func()) error {
	err := errHandedOver
	c.change(func() {
		if c.ended {
			return
		}
		if err = nil; c.cancel != nil {
			c.of.void()
			c.cancel(errSought)
		}
		rewind()
		c.seeks++
		c.sought, c.halted = &to, nil
	})
	return err
}

// end ends the shard's reading for good, unless it was sought meanwhile.
func (c *control) end() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = c.sought == nil
	return c.ended
}

// close ends the shard's reading for good.
func (c *control) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// halt stops the shard until it is resumed or sought.
func (c *control) halt(why error) {
	c.change(func() {
		if c.sought == nil { // it was not sought meanwhile
			c.halted = why
		}
	})
}

// awaitResume waits until the shard is not halted. It returns false if the shard is to be handed
// over before that.
func (c *control) awaitResume(ctx context.Context, stopping <-chan struct{}) bool {
	for {
		c.mu.Lock()
		halted, changed := c.halted != nil, c.wait()
		c.mu.Unlock()
		if !halted {
			return true
		}
		select {
		case <-changed:
		case <-stopping:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (c *control) pause() { c.change(func() { c.paused = true }) }

func (c *control) resume() { c.change(func() { c.paused, c.halted = false, nil }) }

// setRow notes whether the row says that the shard is paused, and reports whether that is new.
func (c *control) setRow(paused bool) (changed bool) {
	c.mu.Lock()
	changed = c.byRow != paused
	c.mu.Unlock()
	if changed {
		c.change(func() { c.byRow = paused })
	}
	return changed
}

// rowPaused pauses or resumes the shard as its row says, which holds for every worker.
func (h *holding) rowPaused(paused bool) {
	h.pauseFor(paused, "the shard is paused by its lease row: runnel leases resume, or "+
		"lease.Table.Resume, ends that", "the shard is no longer paused by its lease row")
}

// pauseFor pauses or resumes the shard for a row, and says why.
func (h *holding) pauseFor(paused bool, whyPaused, whyResumed string) {
	if !h.control.setRow(paused) {
		return
	}
	kind, text := EventResumed, whyResumed
	if paused {
		kind, text = EventPaused, whyPaused
	}
	h.run.cfg.Logger.Info(text, "worker", h.run.cfg.WorkerID, "stream", h.run.cfg.Stream,
		"shard", string(h.first.Key))
	h.event(Event{Kind: kind})
}

// state returns whether the shard is paused, and the error that stopped it.
func (c *control) state() (paused bool, halted error) {
	if s := c.shown.Load(); s != nil {
		return s.paused, s.halted
	}
	return false, nil
}
