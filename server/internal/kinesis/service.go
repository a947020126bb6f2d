package kinesis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/limit"
	"github.com/runnel-stream/runnel/server/internal/pause"
	"github.com/runnel-stream/runnel/server/internal/serverclock"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Config configures a Service. The zero value of a field means its default.
type Config struct {
	// Log is the data directory's log, opened and not yet started; Shards are its records,
	// which are registered with the same log. Both required.
	Log    *wal.Log
	Shards *shardlog.Store
	// StreamDelay is how long CREATING, UPDATING and DELETING last. Operations that make a stream
	// UPDATING and change its shards do so at the end. Default 100 ms; below 0: no time at all.
	StreamDelay time.Duration
	// SweepEvery is the interval for removing data past its retention period and the rest of
	// deleted streams. Default 1 minute, at least 1 ms.
	SweepEvery time.Duration
	// Limits are the limits on throughput and calls, until SetLimits. Default nil: none.
	Limits *limit.Plan
	// Clock is the service's time. The service raises it to the latest time in the log, and starts
	// it; the caller closes it. Default one without a file, by Now.
	Clock *serverclock.Clock
	Now   func() time.Time // without a Clock; default seam.Wall
	// Pauses counts the pauses of the process; each call carries the count at its arrival, and a
	// call from before a pause is not stored. Default nil: no such check.
	Pauses *pause.Watch
	Logger *slog.Logger // logs failed sweeps and misled clients; default slog.Default()
}

func (c Config) withDefaults() Config {
	if c.StreamDelay == 0 {
		c.StreamDelay = 100 * time.Millisecond
	}
	if c.SweepEvery == 0 {
		c.SweepEvery = time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Clock == nil {
		c.Clock = serverclock.New(serverclock.Config{Wall: c.Now, Logger: c.Logger})
	}
	return c
}

// Validate reports every fault of the configuration at once.
func (c Config) Validate() error {
	var faults []error
	if c.Log == nil {
		faults = append(faults, errors.New("kinesis: Config.Log is missing: open the log first"))
	}
	if c.Shards == nil {
		faults = append(faults, errors.New("kinesis: Config.Shards is missing: "+
			"make the record store first"))
	}
	if c.SweepEvery != 0 && c.SweepEvery < time.Millisecond {
		faults = append(faults, fmt.Errorf("kinesis: Config.SweepEvery is %v: use at least 1ms",
			c.SweepEvery))
	}
	return errors.Join(faults...)
}

// Service answers the Kinesis API. Safe for concurrent use.
type Service struct {
	cfg       Config
	log       *wal.Log
	shards    *shardlog.Store
	catalogue *catalogue.Catalogue
	clock     clock
	sealer    atomic.Pointer[sealer] // nil before Start
	sweeper   sweeper
	fanOut    fanOut
	plans     map[string]*plan         // by operation
	throttle  atomic.Pointer[throttle] // nil: no limits
	scaler    scaler
	resharder resharder
	hints     hints
}

var _ wire.Service = (*Service)(nil)

// errNotStarted is the error of calls before Start.
var errNotStarted = errors.New("kinesis: Start was not called")

// New makes the service and registers its catalogue with the log. Call it before Log.Start,
// and Start after that.
func New(cfg Config) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	plans, err := plans()
	if err != nil {
		return nil, err
	}
	s := &Service{
		plans:     plans,
		cfg:       cfg,
		log:       cfg.Log,
		shards:    cfg.Shards,
		catalogue: catalogue.New(cfg.Shards),
		clock:     clock{cfg.Clock},
		scaler:    scaler{wake: make(chan struct{}, 1)},
		resharder: resharder{wake: make(chan struct{}, 1)},
	}
	s.SetLimits(cfg.Limits)
	s.fanOut.open()
	s.catalogue.OnChange(s.fanOut.changed)
	cfg.Log.Register(wal.KindCatalogue, s.catalogue)
	return s, nil
}

// Start prepares the service once the log is started. It skips the sequence numbers of records that
// may have been lost before, draws the directory's key at the first start, and begins sweeping and
// pending reshards. ctx bounds the call; the rest goes on until Close.
func (s *Service) Start(ctx context.Context) error {
	if err := s.shards.Begin(ctx); err != nil {
		return fmt.Errorf("start the Kinesis service: %w", err)
	}
	s.restoreClock()
	if err := s.clock.Start(); err != nil {
		return fmt.Errorf("start the Kinesis service: %w", err)
	}
	c := s.catalogue
	err := s.change(ctx, 256, func(tx *wal.Tx, now int64) error {
		if c.SealKey() != nil {
			return nil
		}
		key := make([]byte, catalogue.KeySize)
		rand.Read(key) // never fails
		return c.Commit(tx, &catalogue.Change{Op: catalogue.ChangeKey, At: now, Key: key})
	})
	if err != nil {
		return fmt.Errorf("start the Kinesis service: %w", err)
	}
	sealer, err := newSealer(c.SealKey()) // the key is drawn once and never changes
	if err != nil {
		return err
	}
	s.sealer.Store(sealer)
	s.sweeper.start(ctx, s.cfg.SweepEvery, s.sweep)
	s.scaler.start(ctx, s.scaleOnDemand)
	s.resharder.start(ctx, s.followReshards)
	return nil
}

// restoreClock raises the clock to the latest time in the data directory.
func (s *Service) restoreClock() {
	s.catalogue.Read(func() {
		s.clock.notBefore(s.catalogue.DecidedAt())
		for st := range s.catalogue.All() {
			for _, sh := range st.Shards {
				if records := s.shards.Shard(sh.Log); records != nil {
					s.clock.notBefore(records.LastArrival())
				}
			}
		}
	})
}

// Close ends the subscriptions and stops the sweeping, scaling and resharding; pending reshards are
// done after the next start. Call it before Log.Close. Calls in progress end on their own.
func (s *Service) Close() error {
	s.fanOut.close()
	s.sweeper.stop()
	s.scaler.stop()
	s.resharder.stop()
	return nil
}

// Serve answers one call: see wire.Service.
func (s *Service) Serve(ctx context.Context, call *wire.Call) (wire.Answer, error) {
	if s.sealer.Load() == nil {
		return wire.Answer{}, errNotStarted
	}
	op, found := operations[call.Operation]
	if !found {
		return wire.Answer{}, &wire.Error{Code: codeUnknown}
	}
	answer, err := op.serve(s, ctx, call)
	if err != nil {
		s.hintElsewhere(ctx, call.World, err)
	}
	return answer, err
}

// change runs decide under the catalogue's lock inside wal.Log.Sequence. It returns once its
// commit, and everything that decide saw, is durable. size is about that of the frames.
func (s *Service) change(
	ctx context.Context, size int, decide func(tx *wal.Tx, now int64) error,
) error {
	c := s.catalogue
	var decided error
	var seen wal.LSN
	err := s.log.Sequence(ctx, size, func(tx *wal.Tx) {
		c.Write(func() {
			decided = decide(tx, s.clock.read())
			seen = c.LSN()
		})
	})
	if err != nil {
		return err
	}
	if err := s.log.Wait(ctx, seen); err != nil {
		return err
	}
	return decided
}

// changeStream is change for a stream that must be there.
func (s *Service) changeStream(
	ctx context.Context, world wire.World, t *target,
	decide func(tx *wal.Tx, st *catalogue.Stream, now int64) error,
) error {
	name, err := t.name(world)
	if err != nil {
		return err
	}
	return s.change(ctx, 4096, func(tx *wal.Tx, now int64) error {
		st := s.catalogue.Find(world, name, now)
		if st == nil {
			return streamNotFound(world, name)
		}
		return decide(tx, st, now)
	})
}

// view returns a stream as of its last durable change, so that it need not wait for the disk. If a
// stream has no durable change yet, view waits until it is certain that the stream exists, or
// returns nil if it does not.
func (s *Service) view(
	ctx context.Context, world wire.World, name string,
) (st *catalogue.Stream, now int64, err error) {
	s.catalogue.Read(func() {
		now = s.clock.read()
		st = s.catalogue.Find(world, name, now)
	})
	if st = st.Visible(); st != nil && !st.Gone(now) {
		return st, now, nil
	}
	return s.settled(ctx, world, name)
}

// settled returns a stream's newest value, nil if it does not exist, once that answer is durable.
func (s *Service) settled(
	ctx context.Context, world wire.World, name string,
) (st *catalogue.Stream, now int64, err error) {
	var seen wal.LSN
	s.catalogue.Read(func() {
		now = s.clock.read()
		st, seen = s.catalogue.Find(world, name, now), s.catalogue.LSN()
	})
	return st, now, s.log.Wait(ctx, seen)
}

// viewTarget is view for a stream that must be there.
func (s *Service) viewTarget(
	ctx context.Context, world wire.World, t *target,
) (*catalogue.Stream, int64, error) {
	name, err := t.name(world)
	if err != nil {
		return nil, 0, err
	}
	st, now, err := s.view(ctx, world, name)
	if err == nil && st == nil {
		err = streamNotFound(world, name)
	}
	return st, now, err
}

// until returns the end of a state that begins now.
func (s *Service) until(now int64) int64 {
	return now + max(s.cfg.StreamDelay, 0).Milliseconds()
}
