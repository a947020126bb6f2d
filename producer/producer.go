package producer

import (
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/awscbor"
)

// Producer puts records into one stream, in the order of their lanes. It is safe for concurrent
// use. Close ends its goroutines.
type Producer struct {
	cfg   Config
	clock *clock
	reads *awscbor.Client // by cfg.Reader
	puts  *awscbor.Writer // by cfg.Kinesis

	// life is the context of the calls. end cancels it, with a cause.
	life context.Context //nolint:containedctx // the producer's own life, ended by Close
	end  context.CancelCauseFunc
	// reading is the context of look-ups. It also ends when the producer halts.
	reading     context.Context //nolint:containedctx // as above
	stopReading context.CancelCauseFunc
	// open ends when Close begins or the producer halts, which wakes blocked Puts.
	open  context.Context //nolint:containedctx // as above
	close context.CancelCauseFunc

	// settling is held during Journal.Settled, so that the ends of units arrive in order. It is
	// locked before mu.
	settling sync.Mutex
	// mu is held only for steps of the core and of room, never while anything outside is called.
	mu struct {
		sync.Mutex
		core           *core
		room           *room // a record holds room from Put to the end of its callback
		closed         bool  // Put takes no more records
		halted         bool  // no more calls are made
		stopped        bool  // all results were reported, and no more will be
		buffered       int   // records taken and not reported
		bytes          int   // their data and partition keys
		journalFailing bool  // the last Journal.Frozen failed
		// refusal is set when the stream has refused the caller and the producer halts.
		refusal *HaltedError
	}
	charting    chan struct{}  // holds a value while the shards are listed; capacity 1
	scheduleNow chan struct{}  // wakes schedule; capacity 1
	deliverNow  chan struct{}  // wakes deliver; capacity 1
	stop        chan struct{}  // closed to end schedule and deliver
	loops       sync.WaitGroup // schedule and deliver
	calls       sync.WaitGroup // calls, look-ups and listings
	stopOnce    sync.Once
	unseen      unseen
	limit       recordLimit
	packing     packing   // the core's
	sealers     sync.Pool // of *sealer
}

// New returns a producer for cfg.Stream. It makes no call by itself, except to list the shards
// (OrderShard and OrderNone) and for the units in cfg.Resume. A missing stream is noticed
// with the first record.
//
// All calls carry the values of ctx. The end of ctx does not stop the producer, so that all records
// that were taken can be delivered; Close stops it. The error is that of cfg.Validate, or one that
// wraps ErrNotResumable for an invalid unit in cfg.Resume.
func New(ctx context.Context, cfg Config) (*Producer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	p := &Producer{
		cfg:         cfg,
		clock:       newClock(),
		reads:       awscbor.New(cfg.Reader),
		puts:        awscbor.NewWriter(cfg.Kinesis),
		charting:    make(chan struct{}, 1),
		scheduleNow: make(chan struct{}, 1),
		deliverNow:  make(chan struct{}, 1),
		limit:       recordLimit{asking: make(chan struct{}, 1), bytes: cfg.MaxRecordBytes},
		stop:        make(chan struct{}),
	}
	if err := p.start(); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	p.life, p.end = context.WithCancelCause(ctx)
	p.open, p.close = context.WithCancelCause(ctx)
	p.reading, p.stopReading = context.WithCancelCause(p.life)
	p.loops.Go(p.schedule)
	p.loops.Go(p.deliver)
	return p, nil
}

// start makes the core and adds the units of earlier runs to it.
func (p *Producer) start() error {
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) // for jitter
	core, now := newCore(p.cfg.Stream, p.cfg.limits(), random), p.clock.now()
	core.began = now
	var id aggregate.ProducerID
	if _, err := cryptorand.Read(id[:]); err != nil {
		return fmt.Errorf("producer: make an id for the run: %w", err)
	}
	core.groups.identify(id)
	sinceBoot, boot := p.clock.boot(now)
	for i, f := range p.cfg.Resume {
		records, err := p.cfg.thaw(f)
		if err != nil {
			return fmt.Errorf("producer: Resume[%d] of stream %s, unit %v/%d: %w", i, p.cfg.Stream,
				f.Unit.Producer, f.Unit.Number, err)
		}
		age, exact := f.since(sinceBoot, boot)
		core.resume(now, f, records, age, exact)
		for _, r := range records {
			p.mu.buffered++
			p.mu.bytes += len(r.Data) + len(r.PartitionKey)
		}
	}
	p.mu.core, p.packing = core, core.packing
	p.sealers.New = func() any { return new(sealer) }
	p.mu.room = newRoom(p.cfg.MaxBufferedRecords, p.cfg.MaxBufferedBytes, p.cfg.MaxRecordBytes)
	p.mu.room.troubled = core.groups.troubled
	p.mu.room.bytes.most = p.cfg.MaxRecordBytes
	if p.cfg.learns {
		p.mu.room.bytes.most = apiMaxRecordBytes
	}
	signal(p.scheduleNow)
	return nil
}

// ID returns the producer id of this run. Its last four bits are 0. In the ids of the run's units
// they are the number of the unit's group.
func (p *Producer) ID() aggregate.ProducerID { return p.mu.core.groups.run() } // never changes

// Put takes a record and returns the future of its result. Records of one lane are sent in the
// order in which Put took them, except in OrderNone.
//
// Put blocks until the buffer has room for a record of its group (Config.MaxBufferedRecords and
// MaxBufferedBytes). Callers of one group get room in the order of their calls. Put also waits for
// Config.Keys, and may wait for the stream's record limit if the record needs more than 1 MiB.
//
// If ctx ends before the record is taken, the error wraps the context's cause. If ctx has ended
// before the call, Put takes no record even if there is room, so that a loop of Puts ends with its
// context. Once a record is taken, ctx has no effect on it.
//
// The other errors are ErrInvalidPartitionKey, ErrInvalidHashKey, ErrTooLarge and
// ErrNestedAggregate for a record that was not sent because it is invalid, ErrClosed, the errors of
// Config.Keys, and with a Journal a *HaltedError.
//
// The producer sends PartitionKey, ExplicitHashKey and Data. It keeps Data until the record has its
// result; the caller must not change Data before that.
func (p *Producer) Put(ctx context.Context, record runnel.Record) (*Future, error) {
	future := &Future{done: make(chan struct{}), unseen: &p.unseen}
	if err := p.take(ctx, &entry{record: record, future: future}); err != nil {
		return nil, err
	}
	return future, nil
}

// PutFunc is Put with a callback in place of the future. done may be nil.
//
// If PutFunc returns nil, the producer calls done exactly once; otherwise it does not call it. The
// callbacks of a producer run one at a time on one of its goroutines, those of a lane in the lane's
// order except in OrderNone. A record holds its room in the buffer until its callback has returned.
// So a callback must not wait for the same producer: not in Put, Flush, Close or a Future's Wait.
func (p *Producer) PutFunc(ctx context.Context, record runnel.Record, done func(Result)) error {
	return p.take(ctx, &entry{record: record, done: done})
}

// PutMarked is PutFunc with a mark, which is the caller's name for the record, such as its position
// in an input. The Journal gets it with the unit that holds the record (FrozenUnit.Marks).
func (p *Producer) PutMarked(
	ctx context.Context, record runnel.Record, mark uint64, done func(Result),
) error {
	return p.take(ctx, &entry{record: record, mark: mark, done: done})
}

// take assigns a hash key to a record, if Config.Keys has to, and admits the record.
func (p *Producer) take(ctx context.Context, e *entry) error {
	if ctx.Err() != nil {
		return fmt.Errorf("put to stream %s: %w", p.cfg.Stream, context.Cause(ctx))
	}
	if p.cfg.Keys == nil || e.record.ExplicitHashKey != "" || aggregate.IsAggregate(e.record.Data) {
		return p.admit(ctx, e)
	}
	if err := p.useKey(ctx, e); err != nil {
		return err
	}
	err := p.admit(ctx, e)
	if err != nil {
		e.used()
	}
	return err
}

// admit checks a record with its final keys, waits for room, and passes the record to the core.
func (p *Producer) admit(ctx context.Context, e *entry) error {
	if err := p.cfg.check(e.record); err != nil {
		return err
	}
	p.packing.examine(e)
	if err := p.fit(ctx, e); err != nil {
		return err
	}
	size, core := e.size(), p.mu.core // the pointer never changes
	p.mu.Lock()
	l, known := core.seek(e)
	if !known {
		p.mu.Unlock()
		e.makeHash()
		p.mu.Lock()
		l, _ = core.seek(e)
	}
	if w := p.mu.room.take(int(e.group), size); w != nil {
		p.mu.Unlock()
		if err := p.await(ctx, w); err != nil {
			return err
		}
		p.mu.Lock()
		l, _ = core.seek(e)
	}
	if p.mu.closed {
		p.giveBack(int(e.group), 1, size)
		p.mu.Unlock()
		return p.closedError()
	}
	wakes := core.put(p.clock.lately(), e, l)
	p.mu.buffered++
	p.mu.bytes += size
	p.mu.Unlock()
	if wakes {
		signal(p.scheduleNow)
	}
	return nil
}

// giveBack releases the room of records of a group. The caller holds mu.
func (p *Producer) giveBack(group, records, bytes int) {
	p.mu.room.release(group, records, bytes)
	p.mu.room.serve()
}

// await waits until the waiter has been granted its room.
func (p *Producer) await(ctx context.Context, w *waiter) error {
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	case <-p.open.Done():
	}
	p.mu.Lock()
	p.mu.room.withdraw(w)
	p.mu.Unlock()
	if p.open.Err() != nil {
		return p.closedError()
	}
	return fmt.Errorf("put to stream %s: waiting for room in the producer's buffer: %w",
		p.cfg.Stream, context.Cause(ctx))
}

// closedError returns the error of Put after Close or a halt.
func (p *Producer) closedError() error {
	if err := p.refused(); err != nil {
		return err
	}
	return fmt.Errorf("put to stream %s: %w", p.cfg.Stream, ErrClosed)
}

// schedule makes the calls that the core decides on, until stop is closed.
func (p *Producer) schedule() {
	alarm := time.AfterFunc(time.Hour, func() { signal(p.scheduleNow) })
	defer alarm.Stop()
	for {
		wait, armed := p.launchAll()
		alarm.Stop()
		if armed {
			alarm.Reset(wait)
		}
		select {
		case <-p.scheduleNow:
		case <-p.stop:
			return
		}
	}
}

// launchAll starts every call that can be made now. If armed, it is to be called again after wait,
// even if nothing happens before.
func (p *Producer) launchAll() (wait time.Duration, armed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.halted {
		return 0, false
	}
	core, now := p.mu.core, p.clock.now()
	core.tick(now)
	if s := core.search(now); s != nil {
		p.calls.Go(func() { p.lookUp(s) })
	}
	if core.listing(now) {
		p.calls.Go(p.list)
	}
	if core.ask(now) {
		p.calls.Go(p.askTime)
	}
	var batch []*call
	for made := core.launch(now); made != nil; made = core.launch(now) {
		if len(made.fresh) > 0 {
			batch = append(batch, made)
			continue
		}
		p.calls.Go(func() { p.put(made) })
	}
	if len(batch) > 0 {
		p.calls.Go(func() { p.journalAndPut(batch) })
	}
	if len(core.ledger.settled) > 0 {
		signal(p.deliverNow)
	}
	at, armed := core.wake()
	return at.Sub(now), armed
}

// land passes the outcome of a call to the core.
func (p *Producer) land(made *call, o outcome) {
	p.landing(o.all.err, func(c *core, now time.Time) { c.land(now, made, o) })
}

// landing passes an outcome to the core, and logs the beginning and the end of an outage.
func (p *Producer) landing(cause error, take func(*core, time.Time)) {
	p.mu.Lock()
	core, now := p.mu.core, p.clock.now()
	before, began := core.gate.active(), core.gate.began
	take(core, now)
	after, waiting := core.gate.active(), p.mu.buffered
	p.mu.Unlock()
	p.halt()
	signal(p.deliverNow)
	signal(p.scheduleNow)
	switch {
	case !before && after:
		p.cfg.Logger.Warn("the stream does not answer: records are kept and tried again",
			"stream", p.cfg.Stream, "records", waiting, "error", cause)
	case before && !after:
		p.cfg.Logger.Info("the stream answers again",
			"stream", p.cfg.Stream, "records", waiting, "after", now.Sub(began))
	}
}

// signal wakes the goroutine that receives from wake, at once or at its next receive.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
