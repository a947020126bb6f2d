package reshard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

// DefaultWindow is the default length of one observation of a stream by Autoscale.
const DefaultWindow = 30 * time.Second

// KinesisAPI is the part of the Kinesis API that Autoscale uses. *kinesis.Client implements it.
type KinesisAPI interface {
	Reader
	Resharder
}

// AutoscaleConfig configures Autoscale. Stream and Kinesis are required; every other field's zero
// value is its default, with which Autoscale observes the stream and reports its decisions, but
// changes nothing.
type AutoscaleConfig struct {
	// Stream is the stream's name or ARN. Required.
	Stream string
	// Kinesis makes the calls; *kinesis.Client implements it. Required.
	Kinesis KinesisAPI

	Policy Policy // the thresholds
	// Apply allows changes to the stream. Without it Autoscale makes and reports the same
	// decisions, but does not carry them out.
	Apply bool
	// Every is the time from the start of one window to the start of the next. Default 1 minute.
	// If a round takes longer, the next one starts at once.
	Every time.Duration
	// Window is the length of one observation. It reads all records, with one read a second of
	// each shard, and AWS counts these reads together with the reads of consumers. At most
	// Every. Default DefaultWindow, or Every if that is less.
	Window time.Duration
	// Parallel is the number of shards that are read at the same time, as in the type Window.
	// Default 32.
	Parallel int
	// Once ends Autoscale after a single decision, from one window and without a history: as if
	// SplitWindows, SplitOf and MergeWindows were 1.
	Once bool
	// Throttles returns the producers' counts since the previous call. The result of the call
	// before a window is ignored; it only starts the count. One goroutine calls it, before and
	// after each window. If it fails, Autoscale reports the error and decides by the observed
	// load alone. Default: there are no counts.
	Throttles func(context.Context) (Throttled, error)

	// OnEvent is called for every event, in order, by the goroutine of Autoscale. Default none.
	OnEvent func(Event)
}

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events.
const (
	EventDecided EventKind = "decided" // a window is over: Sample, Observed and Decision
	EventStepped EventKind = "stepped" // a step of a decision's plan: Step, State, Number and Of
	EventApplied EventKind = "applied" // all of them are done: Decision
	EventFailed  EventKind = "failed"  // Err, and Autoscale goes on
)

// Event is one report of Autoscale. The fields that its kind does not use are zero.
type Event struct {
	Kind     EventKind // says which of the fields below are set
	At       time.Time // when it was reported
	Sample   Sample    // the measurement that the decision is based on
	Observed Observed  // the totals of the window
	Decision Decision  // the decision, or the one whose plan is carried out
	Step     plan.Step // the step of the plan
	State    StepState // its progress
	Number   int       // of the step, from 1 on
	Of       int       // the number of steps of the plan
	Err      error     // the cause
}

// ErrOnDemand is returned for a stream in on-demand mode: only AWS changes its shards.
var ErrOnDemand = errors.New("the stream is in on-demand mode: AWS alone splits and merges its " +
	"shards")

// hotNames is the number of partition keys that are counted to find the heaviest. loadCells is
// the number of cells of the load histogram. Together they take some 15 MiB of memory.
const (
	hotNames  = 4096
	loadCells = 1 << 17
)

// Autoscale splits and merges the shards of cfg.Stream to match its load, window by window, until
// ctx ends. Then it returns nil, even between two steps of a plan. It needs no state of an
// earlier run: if that run was interrupted in the middle of a change, even by kill -9, Autoscale
// waits until the stream has finished the step and starts with the shards that it finds.
//
// Autoscale reports temporary errors and goes on: throttling, outages, and a reshard of the
// stream by something else. It returns lasting errors: an invalid policy or Config, a stream that
// does not exist or is in on-demand mode (ErrOnDemand), missing permissions. With Once it returns
// any error that prevents its decision.
func Autoscale(ctx context.Context, cfg AutoscaleConfig) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg = cfg.withDefaults()
	core, err := NewAutoscaler(cfg.Policy)
	if err != nil {
		return err
	}
	l := &autoscaling{client: cfg.Kinesis, stream: cfg.Stream, cfg: cfg, core: core}
	l.report = func(e Event) {
		e.At = time.Now()
		cfg.OnEvent(e)
	}
	if err := l.run(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

func (c AutoscaleConfig) withDefaults() AutoscaleConfig {
	set(&c.Every, time.Minute)
	set(&c.Window, min(DefaultWindow, c.Every))
	if c.Once {
		c.Policy.SplitWindows, c.Policy.SplitOf, c.Policy.MergeWindows = 1, 1, 1
	}
	if c.OnEvent == nil {
		c.OnEvent = func(Event) {}
	}
	return c
}

// Validate reports every fault of the configuration.
func (c AutoscaleConfig) Validate() error {
	c = c.withDefaults()
	var faults []error
	if c.Stream == "" {
		faults = append(faults, errors.New("reshard: Stream is missing: want the stream's name "+
			"or ARN"))
	}
	if err := streamref.Check(c.Stream); err != nil {
		faults = append(faults, fmt.Errorf("reshard: Stream is %q, %w", c.Stream, err))
	}
	if c.Kinesis == nil {
		faults = append(faults, errors.New("reshard: Kinesis is missing: want a *kinesis.Client"))
	}
	if c.Window <= 0 || c.Window > c.Every {
		faults = append(faults, fmt.Errorf("reshard: Window is %s: want above 0 and up to Every, "+
			"which is %s", c.Window, c.Every))
	}
	if c.Parallel < 0 {
		faults = append(faults, fmt.Errorf("reshard: Parallel is %d: want 0 (for 32) or more",
			c.Parallel))
	}
	return errors.Join(faults...)
}

// autoscaling is the state of one call of Autoscale.
type autoscaling struct {
	client KinesisAPI
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
			l.report(Event{Kind: EventFailed, Err: err})
			wait = min(wait, readEvery) // a window that was cut short
		case err != nil && (l.cfg.Once || !awserr.Kinesis.Transient(err)):
			return err
		case err != nil:
			l.report(Event{Kind: EventFailed, Err: err})
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
		out, err := l.client.DescribeStreamSummary(ctx, streamref.Describe(l.stream))
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

// round observes the stream for one window, decides, and with Apply carries out the decision.
func (l *autoscaling) round(ctx context.Context) error {
	sample, observed, err := l.look(ctx)
	if err != nil {
		return err
	}
	decision, err := l.core.Decide(sample)
	if err != nil {
		return err
	}
	l.report(Event{Kind: EventDecided, Sample: sample, Observed: observed, Decision: decision})
	if !l.cfg.Apply || decision.Action == ActionHold {
		return nil
	}
	number := 0
	err = Apply(ctx, l.client, l.stream, decision.Plan, func(step plan.Step, s StepState) {
		if s != StepDone {
			number++
		}
		l.report(Event{
			Kind: EventStepped, Step: step, State: s, Number: number, Of: len(decision.Plan.Steps),
		})
	})
	if err == nil {
		l.report(Event{Kind: EventApplied, Decision: decision})
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
	perRecord := policy.ShardBytes / policy.ShardRecords // a record counts as this many bytes
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
		l.report(Event{Kind: EventFailed, Err: fmt.Errorf("no count of throttled records for this "+
			"window: %w; the decision uses the observed load alone", failed)})
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
