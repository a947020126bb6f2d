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
	"github.com/runnel-stream/runnel/server/internal/memlimit"
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
	// Memory is the limit on the memory of all data, if they are kept in memory. Default nil: none.
	Memory *memlimit.Limit
	// Clock is the server's clock. The service raises it to the latest time in the log, and starts
	// it; the caller closes it. Required.
	Clock *serverclock.Clock
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
	if c.Clock == nil {
		faults = append(faults, errors.New("kinesis: Config.Clock is missing: want the "+
			"server's clock"))
	}
	if c.SweepEvery != 0 && c.SweepEvery < time.Millisecond {
		faults = append(faults, fmt.Errorf("kinesis: Config.SweepEvery is %v: use at least 1ms",
			c.SweepEvery))
	}
	return errors.Join(faults...)
}

// Service answers the Kinesis API. Safe for concurrent use.
type Service struct {
	plans     map[string]*plan       // by operation
	sealer    atomic.Pointer[sealer] // nil before Start
	shards    *shardlog.Store
	streams   *streams
	limits    *limiter
	writer    *writer
	fanOut    *fanOut
	sweeper   *sweeper
	resharder *resharder
	scaler    *scaler
	hints     *hints
}

var _ wire.Service = (*Service)(nil)

// ShardMemory is the memory of a shard without records, in bytes: 3 KB by measurement, of 20,000
// shards.
const ShardMemory = 4 << 10

// PlannedShards returns the number of shards that streams in UPDATING are about to open.
func (s *Service) PlannedShards() int64 { return s.resharder.planned.Load() }

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
	all := &streams{
		log: cfg.Log, catalogue: catalogue.New(cfg.Shards), clock: clock{cfg.Clock},
		delay: cfg.StreamDelay, memory: cfg.Memory,
	}
	limits := &limiter{streams: all}
	reshards := &resharder{streams: all, logger: cfg.Logger, wake: make(chan struct{}, 1)}
	s := &Service{
		plans: plans, shards: cfg.Shards, streams: all, limits: limits, resharder: reshards,
		writer: &writer{streams: all, shards: cfg.Shards, limits: limits, pauses: cfg.Pauses},
		fanOut: newFanOut(),
		sweeper: &sweeper{
			streams: all, shards: cfg.Shards, limits: limits, logger: cfg.Logger,
			every: cfg.SweepEvery, deleted: make(chan struct{}, 1),
		},
		scaler: &scaler{
			streams: all, limits: limits, resharder: reshards, logger: cfg.Logger,
			wake: make(chan struct{}, 1),
		},
		hints: &hints{streams: all, logger: cfg.Logger},
	}
	s.SetLimits(cfg.Limits)
	all.catalogue.OnChange(s.fanOut.changed)
	cfg.Log.Register(wal.KindCatalogue, all.catalogue)
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
	if err := s.streams.clock.Start(); err != nil {
		return fmt.Errorf("start the Kinesis service: %w", err)
	}
	if err := s.drawKey(ctx); err != nil {
		return fmt.Errorf("start the Kinesis service: %w", err)
	}
	sealer, err := newSealer(s.streams.catalogue.SealKey())
	if err != nil {
		return err
	}
	s.sealer.Store(sealer)
	s.sweeper.start(ctx)
	s.scaler.start(ctx)
	s.resharder.start(ctx)
	return nil
}

// drawKey draws the directory's key, once: it never changes. Later starts write nothing, for the
// disk may be full.
func (s *Service) drawKey(ctx context.Context) error {
	c := s.streams.catalogue
	if c.SealKey() != nil {
		return nil
	}
	return s.streams.change(ctx, 256, func(tx *wal.Tx, now moment) error {
		key := make([]byte, catalogue.KeySize)
		rand.Read(key) // never fails
		return c.Commit(tx, &catalogue.Change{Op: catalogue.ChangeKey, At: now.Stamp, Key: key})
	})
}

// restoreClock raises the clock to the latest times in the data directory. A state began, in
// elapsed time, the stream delay before its end.
func (s *Service) restoreClock() {
	began := func(until int64) {
		s.streams.clock.ElapsedNotBefore(until - max(s.streams.delay, 0).Milliseconds())
	}
	s.streams.catalogue.Read(func() {
		s.streams.clock.notBefore(s.streams.catalogue.DecidedAt())
		for st := range s.streams.catalogue.All() {
			began(st.Until)
			for _, c := range st.Consumers {
				began(c.Until)
			}
			for _, sh := range st.Shards {
				if records := s.shards.Shard(sh.Log); records != nil {
					s.streams.clock.notBefore(records.LastArrival())
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
		s.hints.elsewhere(ctx, call.World, err)
	}
	return answer, err
}
