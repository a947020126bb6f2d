package consumer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awscbor"
	"github.com/runnel-stream/runnel/internal/fanout"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/sink"
)

// ErrAlreadyRan is returned by a second Run: a worker runs once.
var ErrAlreadyRan = errors.New("the worker has run before: make another one")

var errShutdown = errors.New("the worker's shutdown time is over")

// Worker is one member of a fleet.
type Worker struct {
	cfg     Config
	ran     atomic.Bool
	current atomic.Pointer[run]
}

// New makes a worker. It makes no call yet.
func New(cfg Config) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Worker{cfg: cfg.withDefaults()}, nil
}

// ID returns the worker's name in the lease table.
func (w *Worker) ID() string { return w.cfg.WorkerID }

// Run makes the lease table if it is missing, and takes part in the fleet until ctx is done. Then
// it lets the handlers and the sink finish the work in hand, checkpoints and gives its leases back,
// for which there is Config.ShutdownTimeout, and returns nil. With Config.Once it returns nil when
// the work is done, and the context's cause if it was stopped before.
//
// It returns one of these errors, which errors.Is distinguishes:
//
//   - lease.ErrOtherStream if the table belongs to another stream, or the stream was created again
//     (ErrRecreated, if that was while it ran);
//   - lease.ErrManagedByKCL3, lease.ErrMultiStream or lease.ErrNotLeaseTable for a table that
//     cannot be shared;
//   - ErrReplaced if a younger process of the same static worker goes on in its place;
//   - ErrStreamGone or lease.ErrTableNotFound if the stream or the table was deleted;
//   - with Config.Once, lease.ErrUnreadableRow for rows of the table that cannot be read, so that
//     their shards were not processed;
//   - the error that kept it from starting for Config.StartTimeout.
//
// Every other failure is tried again for as long as it runs, and reported to Config.Logger and
// Config.OnEvent.
//
// When Run returns, every goroutine it started has ended. So a handler that does not return when
// its context is done delays it.
func (w *Worker) Run(ctx context.Context) error {
	if w.ran.Swap(true) {
		return ErrAlreadyRan
	}
	// life ends when the worker is to drop its work, graceful when it is to hand it over.
	life, drop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer drop(nil)
	graceful, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	over := make(chan struct{})
	var guard sync.WaitGroup
	guard.Go(func() { w.guard(ctx, graceful, stop, drop, over) })
	defer guard.Wait()
	defer close(over)

	r := newRun(w.cfg, graceful.Done())
	w.current.Store(r)
	defer r.closeFanout()
	defer r.figures.end()
	err := r.begin(graceful)
	if err == nil {
		publishRest := w.publishing(life, r)
		err = r.coordinate(life)
		stop(nil)
		r.handBack(life)
		publishRest()
	}
	switch {
	case errors.Is(context.Cause(ctx), seam.ErrKilled):
		return seam.ErrKilled
	case ctx.Err() != nil && w.cfg.Once && !r.once.isFinished():
		return context.Cause(ctx)
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("consumer: %w", err)
	}
	return nil
}

// guard ends graceful and life when ctx ends: first graceful and then life if the worker is
// stopped, both at once if it is killed (seam.ErrKilled). So a reader that sees graceful end can
// find out from life which of the two happened.
func (w *Worker) guard(
	ctx, graceful context.Context, stop, drop context.CancelCauseFunc, over <-chan struct{},
) {
	end := ctx.Done()
	kill := func() {
		if end = nil; errors.Is(context.Cause(ctx), seam.ErrKilled) {
			drop(seam.ErrKilled)
		}
	}
	select {
	case <-over:
		return
	case <-end:
		kill()
		stop(context.Cause(ctx))
	case <-graceful.Done(): // it ends by itself
	}
	timer := time.NewTimer(w.cfg.ShutdownTimeout)
	defer timer.Stop()
	for {
		select {
		case <-over:
			return
		case <-end:
			kill()
		case <-timer.C:
			drop(errShutdown)
			<-over
			return
		}
	}
}

// run holds the state of one Run. Its fields are set by begin and then belong to the coordinator,
// except for fields that never change: every goroutine may read these.
type run struct {
	cfg      Config
	stopping <-chan struct{} // closed when the worker is to stop and hand over
	reads    *awscbor.Client
	shards   *shardmap.Map
	sink     sink.Sink
	table    *lease.Table
	stream   lease.Stream
	once     *once
	ends     ends // of handlers' shards
	states   *states
	identity *shardmap.Identity
	fanout   *fanout.Consumer           // nil without Config.Fanout
	polling  quiet                      // of the lines about shards polled for lack of it
	kept     atomic.Int64               // the stream's retention period, as of the last look at it
	final    chan error                 // the error that ends the worker, of a shard
	rows     rows                       // that cannot be read
	buffer   buffer                     // of what was read
	holdings holdings                   // held, for operators
	figures  figures                    // for Status
	busy     busy                       // in handlers
	requests chan func(context.Context) // for the coordinator to carry out
	origin   runnel.From                // the application's, once it is settled
	output   string                     // the application's, once it is settled

	// These belong to the coordinator.
	binding lease.Binding
	fleet   fleet
	held    map[runnel.ShardID]*holding
	ended   chan *holding
	absent  []runnel.ShardID // ended leases that the last audit did not find listed
	quiet   quiet
	gaps    gaps
	budgets budgets
	static  lease.Static // this process of a static worker; its number is set by the first look

	successors successors
}

func newRun(cfg Config, stopping <-chan struct{}) *run {
	r := &run{
		cfg: cfg, stopping: stopping, sink: cfg.Sink, buffer: buffer{limit: cfg.Buffer},
		reads: awscbor.New(cfg.Kinesis), shards: shardmap.New(cfg.Kinesis, cfg.Stream),
		held: map[runnel.ShardID]*holding{}, ended: make(chan *holding),
		final: make(chan error, 1), requests: make(chan func(context.Context)),
		successors: successors{planned: make(chan struct{})},
	}
	r.fleet.run = r
	if cfg.Static {
		r.static = lease.Static{Process: rand.Text(), Absence: cfg.Absence}
	}
	r.identity = shardmap.NewIdentity(r.identify)
	return r
}

func (r *run) isStopping() bool {
	select {
	case <-r.stopping:
		return true
	default:
		return false
	}
}

func (r *run) observe(e Event) {
	e.Time, e.Worker = time.Now(), r.cfg.WorkerID
	if e.Kind == EventCommitted {
		r.gaps.forget(e.ShardID) // it has passed its gap, and may be restored to before it
	}
	r.figures.count(&e)
	r.cfg.OnEvent(e)
}

// failed reports a failure that will be tried again: every time to OnEvent, and now and then
// to the log. Run reports the error that ends the worker, once.
func (r *run) failed(shard runnel.ShardID, err error) {
	if isFinal(err) {
		r.giveUp(err)
		return
	}
	if throttled(err) {
		r.throttled(shard)
	}
	r.reportFailure(shard, err)
}

func (r *run) reportFailure(shard runnel.ShardID, err error) {
	if since, ok := r.quiet.may(shard, time.Now()); ok {
		r.cfg.Logger.Warn("will try again", "worker", r.cfg.WorkerID, "stream", r.cfg.Stream,
			"shard", string(shard), "error", err, "failuresSinceTheLastLine", since)
	}
	r.observe(Event{Kind: EventFailed, ShardID: shard, Err: err})
}

// begin connects to the stream and the table, and makes sure that every shard has a lease.
func (r *run) begin(ctx context.Context) error {
	giveUp := time.Now().Add(r.cfg.StartTimeout)
	var now bounds
	for _, step := range []func() error{
		func() (err error) {
			r.stream, now, err = r.describe(ctx)
			return err
		},
		func() (err error) {
			r.table, err = lease.New(lease.Config{
				DynamoDB: r.cfg.DynamoDB, Table: r.cfg.App, Stream: r.stream,
				CallTimeout: min(5*time.Second, r.cfg.Failover/8),
			})
			if err == nil {
				r.states = r.newStates()
			}
			return err
		},
		func() error { return r.findConsumer(ctx) },
		func() error { return r.table.Ensure(ctx) },
		func() (err error) {
			r.binding, err = r.table.Bind(ctx, r.cfg.From.Pin(now.date))
			times := lease.TimesOf(r.binding.Origin, r.cfg.From.Pin(now.date), now.date)
			r.table = r.table.WithTimes(times)
			return err
		},
		func() error {
			if r.cfg.Once {
				r.once = newOnce(now.latest)
			}
			return r.audit(ctx)
		},
		func() error {
			if r.cfg.Output == "" {
				return nil
			}
			return r.table.SettleOutput(ctx, r.cfg.Output)
		},
		func() error {
			r.origin, r.output = r.binding.Origin, r.cfg.Output
			r.fleet.findIndex(ctx)
			return nil
		},
	} {
		for attempt := 1; ; attempt++ {
			err := step()
			if err == nil {
				break
			}
			final := !transient(err) || isFinal(err) || !time.Now().Before(giveUp)
			if final || ctx.Err() != nil {
				return err
			}
			r.failed("", err)
			if !retry.WaitOr(ctx, backoff(attempt, longestBackoff), nil) {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}
