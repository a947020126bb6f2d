package consumer

import (
	"context"
	"errors"
	"sync"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/sink"
)

// These limit the window of a Record handler.
const (
	maxAhead = 10_000 // records from the lowest unfinished one on
	atOnce   = 256    // records that are added to it under one lock
)

// recordForm passes each record to a Record handler, several keys of the shard at a time. The
// records of one key are handled one after the other, in order. The committed position is below the
// lowest unfinished record.
//
// A lane holds the records of one key that have been taken. Up to Config.Parallel workers, one
// goroutine each, take lanes from ready, handle the first record of each, and put the lane back. A
// lane whose record failed is out of ready until its pause is over, and holds up no other.
type recordForm struct {
	caller
	progress *progress
	handler  func(context.Context, *runnel.Record) error
	ctx      context.Context //nolint:containedctx // of the calls, which outlive take
	stop     context.CancelFunc
	changed  chan struct{} // one place: see wake
	workers  sync.WaitGroup
	shut     chan struct{} // closed when no record behind the begun ones is begun

	mu      sync.Mutex
	window  []inWindow // the records that were taken and are not committed, in order
	done    int        // entries that were committed and removed, since the beginning
	lanes   map[string]*lane
	spare   []*lane // without records
	ready   queue
	running int // workers
	now     runnel.Position
	begun   int  // the number behind the last record that was begun
	closing bool // no record from begun on is begun
	closed  bool // no further record is begun
	failure error
}

// inWindow is a record in the window.
type inWindow struct {
	record   *runnel.Record
	through  runnel.Position // up to which its end commits
	of       *unsettled
	next     int // the next record of its lane; 0 if there is none
	finished bool
}

// unsettled is a page of which some records are not finished.
type unsettled struct {
	page *page
	left int
}

// lane is the records of one key that were taken and have not been handled, in order. Records are
// counted from the beginning, so that the first one of the shard's reading has the number 0.
type lane struct {
	key         string // the handler may change that of a record
	first, last int
	attempts    int // at the first record
	failures    int // in a row, unavailability included
}

// queue is a first-in, first-out queue of lanes.
type queue struct {
	lanes []*lane
	head  int
}

func (q *queue) push(l *lane) {
	if q.head > len(q.lanes)/2 {
		q.lanes = q.lanes[:copy(q.lanes, q.lanes[q.head:])]
		q.head = 0
	}
	q.lanes = append(q.lanes, l)
}

func (q *queue) pop() *lane {
	if q.head == len(q.lanes) {
		return nil
	}
	q.head++
	return q.lanes[q.head-1]
}

func newRecordForm(
	ctx context.Context, c caller, at runnel.Position, p *progress,
) *recordForm {
	f := &recordForm{
		caller: c, progress: p, handler: c.of.run.cfg.Record,
		changed: make(chan struct{}, 1), shut: make(chan struct{}), lanes: map[string]*lane{},
		now: at,
	}
	f.quit = f.shut
	f.ctx, f.stop = context.WithCancel(ctx)
	return f
}

func (f *recordForm) wake() <-chan struct{} { return f.changed }

// commit passes the committed position on. After a failure it waits for the records in work, which
// may still succeed.
func (f *recordForm) commit(ctx context.Context) (bool, error) {
	f.mu.Lock()
	now, drained, failure := f.now, len(f.window) == 0, f.failure
	f.mu.Unlock()
	if failure == nil {
		return drained, f.progress.commit(sink.Committed{End: now})
	}
	if err := f.flush(ctx); err != nil {
		return false, err
	}
	return false, failure
}

func (f *recordForm) end(context.Context) error {
	return f.progress.commit(sink.Committed{End: runnel.End()})
}

// take adds a page's records to the window. It waits for room, and commits meanwhile.
func (f *recordForm) take(ctx context.Context, p *page) error {
	if len(p.records) == 0 {
		f.pass(p.through)
		f.of.settled(p)
		return nil
	}
	of := &unsettled{page: p, left: len(p.records)}
	for added := f.add(of, 0); added < len(p.records); added = f.add(of, added) {
		if _, err := f.commit(ctx); err != nil {
			return err
		}
		if f.hasRoom() {
			continue
		}
		select {
		case <-f.changed:
		case <-f.of.stopping:
			return errStopping
		case <-ctx.Done():
			return context.Cause(ctx)
		}
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

func (f *recordForm) hasRoom() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.window) < maxAhead
}

// add adds some of a page's records to the window, from the one with the index from on, and returns
// the index of the next one.
func (f *recordForm) add(of *unsettled, from int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	records := of.page.records
	to := min(from+atOnce, from+maxAhead-len(f.window), len(records))
	for i := from; i < to; i++ {
		e := inWindow{record: &records[i], through: records[i].Position, of: of}
		if i == len(records)-1 {
			e.through = of.page.through
		}
		number := f.done + len(f.window)
		f.window = append(f.window, e)
		l := f.lanes[e.record.PartitionKey]
		if l != nil {
			f.window[l.last-f.done].next = number
			l.last = number
			continue
		}
		l = f.newLane()
		l.key, l.first, l.last = e.record.PartitionKey, number, number
		f.lanes[l.key] = l
		f.makeReady(l)
	}
	return to
}

func (f *recordForm) newLane() *lane {
	n := len(f.spare)
	if n == 0 {
		return new(lane)
	}
	l := f.spare[n-1]
	f.spare = f.spare[:n-1]
	return l
}

// makeReady lets a worker have a lane. The lock is held.
func (f *recordForm) makeReady(l *lane) {
	f.ready.push(l)
	if f.running < max(1, f.of.run.cfg.Parallel) && !f.closing {
		f.running++
		f.workers.Go(f.work)
	}
}

// work handles the first records of ready lanes, until there is none.
func (f *recordForm) work() { f.workOn(f.next()) }

// workOn is work from a lane's first record on. The handler is called in this goroutine, which
// costs less than one for each record. If it ends the goroutine, another one goes on.
func (f *recordForm) workOn(l *lane, record *runnel.Record) {
	var calling bool
	defer func() {
		if calling {
			f.workers.Go(func() { f.workOn(f.exited(l, record)) })
		}
	}()
	handle := func(ctx context.Context) error { return f.handler(ctx, record) }
	for l != nil {
		calling = true
		failure, err := f.callBy(f.ctx, recovered, handle)
		calling = false
		l, record = f.settle(l, record, failure, err)
	}
}

// exited is settle for a handler that ended its goroutine.
func (f *recordForm) exited(l *lane, record *runnel.Record) (*lane, *runnel.Record) {
	failure, err := counts(f.ctx, errExit)
	return f.settle(l, record, failure, err)
}

// settle decides on the outcome of a call for a lane's first record, and then does the same as
// next.
func (f *recordForm) settle(
	l *lane, record *runnel.Record, failure, err error,
) (*lane, *runnel.Record) {
	if err == nil && failure != nil {
		failure, err = f.judge(l, record, failure)
	}
	l, record, settled := f.handled(l, failure, err)
	if settled != nil {
		f.of.settled(settled)
	}
	return l, record
}

// next takes the next ready lane, and returns its first record. Without one it ends a worker.
func (f *recordForm) next() (*lane, *runnel.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nextLocked()
}

func (f *recordForm) nextLocked() (*lane, *runnel.Record) {
	for !f.closed {
		l := f.ready.pop()
		if l == nil {
			break
		}
		if !f.closing || l.first < f.begun {
			f.begun = max(f.begun, l.first+1)
			return l, f.window[l.first-f.done].record
		}
	}
	f.running--
	f.signal()
	return nil, nil
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

// handled notes the outcome of a lane's first record, and then does the same as next. It also
// returns the page if that was its last record.
func (f *recordForm) handled(
	l *lane, failure, err error,
) (next *lane, record *runnel.Record, settled *page) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case errors.Is(err, errStopping):
		f.finishBegun() // without this record
	case err != nil:
		f.fail(err)
	case failure != nil:
		f.rest(l)
	default:
		number := l.first
		e := f.window[number-f.done]
		l.attempts, l.failures = 0, 0
		if l.first = e.next; l.first > 0 {
			f.ready.push(l)
		} else {
			delete(f.lanes, l.key)
			f.spare = append(f.spare, l)
		}
		settled = f.finish(number)
	}
	next, record = f.nextLocked()
	return next, record, settled
}

// rest keeps a lane from the workers for a pause. The lock is held.
func (f *recordForm) rest(l *lane) {
	pause := f.policy.after(l.failures)
	f.workers.Go(func() {
		if !retry.WaitOr(f.ctx, pause, f.shut) {
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.closing {
			f.makeReady(l)
		}
	})
}

// fail ends the form. The lock is held.
func (f *recordForm) fail(err error) {
	if f.failure == nil {
		f.failure = err
	}
	f.closed = true
	f.finishBegun()
	f.signal()
}

// finish notes that a record is finished, and moves the committed position. The lock is held.
func (f *recordForm) finish(number int) (settled *page) {
	e := &f.window[number-f.done]
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
	}
	return settled
}

func (f *recordForm) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// flush finishes the records in work, and those before them, so that no finished one comes again.
// It does not wait for a record that fails. After a failure it waits for the records in work only.
func (f *recordForm) flush(ctx context.Context) error {
	f.mu.Lock()
	f.finishBegun()
	f.mu.Unlock()
	for {
		if ctx.Err() != nil { // killed, perhaps
			return context.Cause(ctx)
		}
		f.mu.Lock()
		running, now := f.running, f.now
		f.mu.Unlock()
		if err := f.progress.commit(sink.Committed{End: now}); err != nil || running == 0 {
			return err
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// finishBegun begins no record behind those that were begun. The lock is held.
func (f *recordForm) finishBegun() {
	if !f.closing {
		f.closing = true
		close(f.shut)
	}
}

// close waits for the records in work. Their context ends with ctx.
func (f *recordForm) close(ctx context.Context, _ StopReason) error {
	_ = f.flush(ctx)
	f.stop()
	f.workers.Wait()
	return nil
}
