package reshard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

// DefaultWindow is how long Autoscale looks at a stream at a time.
const DefaultWindow = 30 * time.Second

// Client is what Autoscale needs of Kinesis; *kinesis.Client has it.
type Client interface {
	Reader
	Resharder
}

// AutoscaleConfig is how Autoscale works. The zero value looks, says what it would do, and
// changes nothing.
type AutoscaleConfig struct {
	Policy Policy
	// Apply lets it change the stream; without it the same is decided and reported.
	Apply bool
	// Every is the time from the beginning of a window to that of the next. Default 1 minute.
	// A round that takes longer is followed by the next at once.
	Every time.Duration
	// Window is how long the stream is looked at; its reads count with those of consumers, one a
	// second of each shard, and read everything. At most Every. Default DefaultWindow, or Every
	// if that is less.
	Window time.Duration
	// Parallel is how many shards are read at the same time, as of the type Window. Default 32.
	Parallel int
	// Once ends Autoscale after a single decision, from one window, without a past: as if
	// SplitWindows, SplitOf and MergeWindows were 1.
	Once bool
	// Throttles returns what producers say of the time since the call before; what the first
	// call returns is not looked at. It is called by one goroutine, before each window and after
	// it. When it fails, that is reported, and the window is decided by what was seen alone.
	// Default: nobody says anything.
	Throttles func(context.Context) (Throttled, error)
}

// EventKind is what an Event tells.
type EventKind string

// The kinds of events.
const (
	Decided EventKind = "decided" // a window is over: Sample, Observed and Decision
	Stepped EventKind = "stepped" // a step of a decision's plan: Step, State, Number and Of
	Applied EventKind = "applied" // all of them are done: Decision
	Failed  EventKind = "failed"  // Err, and Autoscale goes on
)

// Event is what Autoscale reports. What a kind does not tell is zero.
type Event struct {
	Kind     EventKind
	At       time.Time
	Sample   Sample
	Observed Observed
	Decision Decision
	Step     plan.Step
	State    State
	Number   int // of the step, from 1 on
	Of       int
	Err      error
}

// ErrOnDemand is returned for a stream that AWS scales.
var ErrOnDemand = errors.New("the stream is in on-demand mode, in which its shards are not ours " +
	"to split and merge")

// hotNames is how many partition keys are counted to name the heaviest, and loadCells how many
// cells of the key space: together some 15 MiB.
const (
	hotNames  = 4096
	loadCells = 1 << 17
)

// Autoscale splits and merges the shards of a stream as its load asks for, window by window, until
// ctx ends; it returns nil then, also amid the steps of a plan. Nothing needs to be known of
// the run before: a change that was interrupted, by kill -9 too, left shards that are looked at
// like any others, and the stream's own end of a step is waited for.
//
// report hears of every event, in order, from Autoscale's goroutine; nil hears nothing.
//
// What may pass is reported and survived: throttling, outages, somebody else who reshards the
// stream. It fails with what does not: a policy or a Config that makes no sense, a stream that is
// not there or on demand (ErrOnDemand), permissions that are missing; with Once with whatever
// keeps it from its decision.
func Autoscale(
	ctx context.Context, client Client, stream string, cfg AutoscaleConfig, report func(Event),
) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	core, err := NewAutoscaler(cfg.Policy)
	if err != nil {
		return err
	}
	l := &autoscaling{client: client, stream: stream, cfg: cfg, core: core}
	l.report = func(e Event) {
		if e.At = time.Now(); report != nil {
			report(e)
		}
	}
	if err := l.run(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

func (c AutoscaleConfig) withDefaults() (AutoscaleConfig, error) {
	set(&c.Every, time.Minute)
	set(&c.Window, min(DefaultWindow, c.Every))
	if c.Once {
		c.Policy.SplitWindows, c.Policy.SplitOf, c.Policy.MergeWindows = 1, 1, 1
	}
	if c.Window <= 0 || c.Window > c.Every || c.Parallel < 0 {
		return c, fmt.Errorf("autoscale: Window is %s, Every %s and Parallel %d: want a window "+
			"above 0 and up to Every, and Parallel 0 or more", c.Window, c.Every, c.Parallel)
	}
	return c, nil
}

// autoscaling is one Autoscale.
type autoscaling struct {
	client Client
	stream string
	cfg    AutoscaleConfig
	core   *Autoscaler
	report func(Event)
}

func (l *autoscaling) run(ctx context.Context) error {
	if err := l.provisioned(ctx); err != nil {
		return fmt.Errorf("autoscale stream %s: %w", l.stream, err)
	}
	for {
		began := time.Now()
		err := l.round(ctx)
		wait := l.cfg.Every - time.Since(began)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrResharded):
			l.report(Event{Kind: Failed, Err: err})
			wait = min(wait, readEvery) // a window that was cut short
		case err != nil && (l.cfg.Once || !retryable(err)):
			return err
		case err != nil:
			l.report(Event{Kind: Failed, Err: err})
		case l.cfg.Once:
			return nil
		}
		if err := retry.Wait(ctx, wait); err != nil {
			return err
		}
	}
}

// provisioned fails for a stream that cannot be resharded.
func (l *autoscaling) provisioned(ctx context.Context) error {
	return persist(ctx, func(ctx context.Context) error {
		out, err := l.client.DescribeStreamSummary(ctx,
			&kinesis.DescribeStreamSummaryInput{StreamName: aws.String(l.stream)})
		if err != nil {
			return err
		}
		mode := out.StreamDescriptionSummary.StreamModeDetails
		if mode != nil && mode.StreamMode == types.StreamModeOnDemand {
			return ErrOnDemand
		}
		return nil
	})
}

// round looks at the stream for a window, decides, and does it if it may.
func (l *autoscaling) round(ctx context.Context) error {
	sample, observed, err := l.look(ctx)
	if err != nil {
		return err
	}
	decision, err := l.core.Decide(sample)
	if err != nil {
		return err
	}
	l.report(Event{Kind: Decided, Sample: sample, Observed: observed, Decision: decision})
	if !l.cfg.Apply || decision.Action == Hold {
		return nil
	}
	number := 0
	err = Apply(ctx, l.client, l.stream, decision.Plan, func(step plan.Step, s State) {
		if s != Done {
			number++
		}
		l.report(Event{
			Kind: Stepped, Step: step, State: s, Number: number, Of: len(decision.Plan.Steps),
		})
	})
	if err == nil {
		l.report(Event{Kind: Applied, Decision: decision})
	}
	return err
}

// look observes the stream for a window.
func (l *autoscaling) look(ctx context.Context) (Sample, Observed, error) {
	shards, err := List(ctx, l.client, l.stream)
	if err != nil {
		return Sample{}, Observed{}, err
	}
	_, failed := l.throttles(ctx)
	histogram, hot := load.NewHistogram(loadCells), load.NewHeavy(hotNames)
	policy := l.cfg.Policy.withDefaults()
	perRecord := policy.ShardBytes / policy.ShardRecords // bytes that are as scarce as a record
	window := Window{For: l.cfg.Window, Parallel: l.cfg.Parallel}
	observed, err := Observe(ctx, l.client, l.stream, window, func(s Seen) {
		histogram.AddPoint(load.Point{
			At: s.Hash, Weight: uint64(s.Bytes), Also: max(1, 1000/uint64(s.Of)),
		})
		hot.Add(s.Hash, s.Key, max(uint64(s.Bytes), uint64(perRecord)/uint64(s.Of)))
	})
	if err != nil {
		return Sample{}, Observed{}, err
	}
	throttled, err := l.throttles(ctx)
	if failed == nil {
		failed = err
	}
	switch {
	case ctx.Err() != nil:
		return Sample{}, Observed{}, context.Cause(ctx)
	case failed != nil:
		throttled = Throttled{}
		l.report(Event{Kind: Failed, Err: fmt.Errorf("what was throttled in this window is not "+
			"known: %w; it is decided by what was seen alone", failed)})
	}
	return Sample{
		At: time.Now(), Took: observed.Took, Shards: shards, Points: histogram.Points(),
		Hot: hot.Top(hotNames), Throttled: throttled,
	}, observed, nil
}

func (l *autoscaling) throttles(ctx context.Context) (Throttled, error) {
	if l.cfg.Throttles == nil {
		return Throttled{}, nil
	}
	return l.cfg.Throttles(ctx)
}
