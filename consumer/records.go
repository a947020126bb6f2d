package consumer

import (
	"context"
	"sync"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/sink"
)

// maxAhead is how many records a Record handler may be ahead of the lowest unfinished one.
const maxAhead = 10_000

// recordForm passes each record to a Record handler, several keys of the shard at a time. The
// records of one key are handled one after the other, in order. The committed position is below the
// lowest unfinished record.
//
// A lane holds the records of one key that have been taken. Up to Config.Parallel workers, one
// goroutine each, take lanes from ready, handle the first record of each, and put the lane back. A
// lane whose record failed is out of ready until its pause is over, and holds up no other.
type recordForm struct {
	caller
	handler func(context.Context, *runnel.Record) error
	ctx     context.Context //nolint:containedctx // of the calls, which outlive take
	stop    context.CancelFunc
	changed chan struct{} // one place: see wake
	workers sync.WaitGroup
	quit    chan struct{} // closed when no further record is begun

	mu      sync.Mutex
	window  []inWindow // the records that were taken and are not committed, in order
	done    int        // entries that were committed and removed, since the beginning
	lanes   map[string]*lane
	ready   []*lane
	running int // workers
	now     runnel.Position
	room    chan struct{} // closed when the window has become smaller; nil if nothing waits
	closed  bool          // no further record is begun
	failure error
}

// inWindow is a record in the window.
type inWindow struct {
	through  runnel.Position // up to which its end commits
	of       *unsettled
	finished bool
}

// unsettled is a page of which some records are not finished.
type unsettled struct {
	page *page
	left int
}

// lane is the records of one key that were taken and have not been handled, in order.
type lane struct {
	key      string
	queue    []waiting
	attempts int // at the first record
	failures int // in a row, unavailability included
}

type waiting struct {
	record *runnel.Record
	index  int // in the window, counted from the beginning
}

func newRecordForm(
	ctx context.Context, c caller, at runnel.Position,
) *recordForm {
	f := &recordForm{
		caller: c, handler: c.of.run.cfg.Record,
		changed: make(chan struct{}, 1), quit: make(chan struct{}), lanes: map[string]*lane{},
		now: at,
	}
	f.ctx, f.stop = context.WithCancel(ctx)
	return f
}

func (f *recordForm) wake() <-chan struct{} { return f.changed }

func (f *recordForm) state() (sink.Committed, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return sink.Committed{End: f.now}, len(f.window) == 0, f.failure
}

func (f *recordForm) end(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = runnel.End()
	return nil
}

// take adds a page's records to the window, and waits for its room.
func (f *recordForm) take(ctx context.Context, p *page) error {
	page := &unsettled{page: p, left: len(p.records)}
	for i := range p.records {
		through := p.records[i].Position
		if i == len(p.records)-1 {
			through = p.through
		}
		if err := f.add(ctx, &p.records[i], inWindow{through: through, of: page}); err != nil {
			return err
		}
	}
	if len(p.records) == 0 {
		f.pass(p.through)
		f.of.settled(p)
	}
	return nil
}

// pass moves the position beyond dropped records.
func (f *recordForm) pass(through runnel.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.window); n > 0 {
		f.window[n-1].through = through
	} else {
		f.now = through
	}
}

func (f *recordForm) add(ctx context.Context, r *runnel.Record, e inWindow) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.window) >= maxAhead && f.failure == nil {
		if f.room == nil {
			f.room = make(chan struct{})
		}
		room := f.room
		f.mu.Unlock()
		var err error
		select {
		case <-room:
		case <-f.of.stopping:
			err = errStopping
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		f.mu.Lock()
		if err != nil {
			return err
		}
	}
	if f.failure != nil {
		return f.failure
	}
	f.window = append(f.window, e)
	l := f.lanes[r.PartitionKey]
	if l == nil {
		l = &lane{key: r.PartitionKey}
		f.lanes[l.key] = l
	}
	l.queue = append(l.queue, waiting{record: r, index: f.done + len(f.window) - 1})
	if len(l.queue) == 1 {
		f.makeReady(l)
	}
	return nil
}

// makeReady lets a worker have a lane. The lock is held.
func (f *recordForm) makeReady(l *lane) {
	f.ready = append(f.ready, l)
	if f.running < max(1, f.of.run.cfg.Parallel) && !f.closed {
		f.running++
		f.workers.Go(f.work)
	}
}

// work handles the first records of ready lanes, until there is none.
func (f *recordForm) work() {
	for {
		l := f.next()
		if l == nil {
			return
		}
		record := l.queue[0].record
		failure, err := f.call(f.ctx, func(ctx context.Context) error {
			return f.handler(ctx, record)
		})
		if err == nil && failure != nil {
			failure, err = f.judge(l, record, failure)
		}
		if p := f.handled(l, failure, err); p != nil {
			f.of.settled(p)
		}
	}
}

func (f *recordForm) next() *lane {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.ready) == 0 {
		f.running--
		f.signal()
		return nil
	}
	l := f.ready[0]
	f.ready = f.ready[1:]
	return l
}

// judge decides on a record that failed: it returns no failure once the record may be passed over.
func (f *recordForm) judge(l *lane, r *runnel.Record, failure error) (error, error) {
	l.failures++
	if !blamesNone(failure) {
		l.attempts++
		if f.policy.isOut(l.attempts) {
			return nil, f.giveUp(f.ctx, []runnel.Record{*r}, failure, l.attempts)
		}
	}
	f.failed(failure, "the record %s", r.Position)
	return failure, nil
}

// handled notes the outcome of a lane's first record. It returns the page if that was its last one.
func (f *recordForm) handled(l *lane, failure, err error) (settled *page) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		f.fail(err)
	case failure != nil:
		f.rest(l)
	default:
		done := l.queue[0]
		l.queue[0] = waiting{}
		l.queue, l.attempts, l.failures = l.queue[1:], 0, 0
		if len(l.queue) == 0 {
			delete(f.lanes, l.key)
		} else {
			f.ready = append(f.ready, l)
		}
		settled = f.finish(done.index)
	}
	return settled
}

// rest keeps a lane from the workers for a pause. The lock is held.
func (f *recordForm) rest(l *lane) {
	pause := f.policy.after(l.failures)
	f.workers.Go(func() {
		if !retry.WaitOr(f.ctx, pause, f.quit) {
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.closed {
			f.makeReady(l)
		}
	})
}

// fail ends the form. The lock is held.
func (f *recordForm) fail(err error) {
	if f.failure == nil {
		f.failure = err
	}
	f.shutLocked()
	f.signal()
	f.grown()
}

// finish notes that a record is finished, and moves the committed position. The lock is held.
func (f *recordForm) finish(index int) (settled *page) {
	e := &f.window[index-f.done]
	e.finished = true
	if e.of.left--; e.of.left == 0 {
		settled = e.of.page
	}
	n := 0
	for n < len(f.window) && f.window[n].finished {
		f.now = f.window[n].through
		f.window[n] = inWindow{}
		n++
	}
	if n > 0 {
		f.window, f.done = f.window[n:], f.done+n
		f.signal()
		f.grown()
	}
	return settled
}

// grown wakes take, since the window may have room. The lock is held.
func (f *recordForm) grown() {
	if f.room != nil {
		close(f.room)
		f.room = nil
	}
}

func (f *recordForm) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// flush begins no further record, and waits for those in work.
func (f *recordForm) flush(ctx context.Context) error {
	f.shut()
	for {
		f.mu.Lock()
		running := f.running
		f.mu.Unlock()
		if running == 0 {
			return nil
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *recordForm) shut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shutLocked()
}

func (f *recordForm) shutLocked() {
	if !f.closed {
		f.closed = true
		close(f.quit)
	}
}

// close waits for the records in work. Their context ends with ctx.
func (f *recordForm) close(ctx context.Context, _ StopReason) error {
	_ = f.flush(ctx)
	f.stop()
	f.workers.Wait()
	return nil
}
