package reshard_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/reshard"
	"github.com/runnel-stream/runnel/runneltest"
	"github.com/runnel-stream/runnel/sink/archive"
)

// scaler runs Autoscale on the stream and keeps its events.
type scaler struct {
	t      *testing.T
	client reshard.KinesisAPI
	cfg    reshard.AutoscaleConfig
	onStep func(reshard.Event)

	mu     sync.Mutex
	events []reshard.Event
	stop   context.CancelFunc
	done   chan error
}

func (s *scaler) start() {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.stop, s.done = cancel, make(chan error, 1)
	cfg := s.cfg
	cfg.Stream, cfg.Kinesis, cfg.OnEvent = stream, s.client, s.on
	go func() { s.done <- reshard.Autoscale(ctx, cfg) }()
}

func (s *scaler) on(e reshard.Event) {
	s.mu.Lock()
	s.events = append(s.events, e)
	s.mu.Unlock()
	if e.Kind == reshard.EventStepped && s.onStep != nil {
		s.onStep(e)
	}
}

// end stops it, and wants no error.
func (s *scaler) end() {
	s.t.Helper()
	s.stop()
	if err := <-s.done; err != nil {
		s.t.Errorf("autoscale: %v", err)
	}
}

// of returns the events of a kind.
func (s *scaler) of(kind reshard.EventKind) []reshard.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.events), func(e reshard.Event) bool {
		return e.Kind != kind
	})
}

// until waits for a condition, at most for so long, and fails the test then.
func (s *scaler) until(what string, most time.Duration, done func() bool) {
	s.t.Helper()
	for began := time.Now(); !done(); time.Sleep(2 * time.Second) {
		if time.Since(began) > most {
			for _, e := range s.of(reshard.EventDecided) {
				s.t.Log(e.Decision.Action, e.Decision.Reasons)
			}
			s.t.Fatalf("not after %s: %s", most, what)
		}
	}
}

// shardLimit is the limit of a shard in these tests, in bytes a second. It is low, so that some
// records a second exceed it.
const shardLimit = 4 << 10

var smallShards = reshard.Policy{
	ShardBytes: shardLimit, MergeWindows: 3, MergeCooldown: 20 * time.Second, MaxShards: 8,
}

// put is a record that was put, in order.
type put struct {
	key string
	n   int
}

// traffic puts records of many keys, each in order, at a rate that can be changed.
type traffic struct {
	producer *producer.Producer
	mu       sync.Mutex
	perStep  int // records each 100 ms
	all      []put
}

func (l *traffic) run(t *testing.T, stop <-chan struct{}) {
	next := map[string]int{}
	for at := 0; ; {
		l.mu.Lock()
		n := l.perStep
		l.mu.Unlock()
		for range n {
			key := fmt.Sprint("k", at%40)
			at++
			l.all = append(l.all, put{key, next[key]})
			err := l.producer.PutFunc(t.Context(), runnel.Record{
				PartitionKey: key,
				Data:         fmt.Appendf(nil, "%s/%d %0390d", key, next[key], 0),
			}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			next[key]++
		}
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// throttles returns the producer's counts in the form for Autoscale.
func (l *traffic) throttles() func(context.Context) (reshard.Throttled, error) {
	var last producer.Stats
	return func(context.Context) (reshard.Throttled, error) {
		now := l.producer.Stats()
		t := reshard.Throttled{
			Stored: now.Delivered - last.Delivered, Refused: now.Throttled - last.Throttled,
		}
		last = now
		return t, nil
	}
}

// puts are the load as the archive's verification reads it.
func (l *traffic) puts() iter.Seq2[archive.SourceRecord, error] {
	return func(yield func(archive.SourceRecord, error) bool) {
		for _, p := range l.all {
			if !yield(archive.SourceRecord{ID: fmt.Sprint(p.key, "/", p.n), Key: p.key}, nil) {
				return
			}
		}
	}
}

// A load that is too much for one shard comes and goes. The shards are split until nothing is
// refused any more, and merged again to the least that is allowed, while a fleet reads; the
// autoscaler is killed amid a change, twice, and another one goes on. Every record is read
// exactly once, each key's in order.
func TestAutoscaleUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := runneltest.NewServer(t, runneltest.InMemory(), runneltest.WithStream(stream, 1),
			runneltest.WithLimits(fmt.Sprint("write-bytes=", shardLimit)),
			runneltest.WithStreamDelay(2*time.Second))
		client := server.Kinesis()
		quiet := slog.New(slog.DiscardHandler)
		p, err := producer.New(t.Context(), producer.Config{
			Stream: stream, Kinesis: client, Reader: client, Logger: quiet, MaxUnitBytes: 2 << 10,
			MaxBufferedRecords: 200,
		})
		if err != nil {
			t.Fatal(err)
		}
		l := &traffic{producer: p, perStep: 2} // 8 KiB/s: two shards at their limit
		var busy, fleet sync.WaitGroup
		calm := make(chan struct{})
		busy.Go(func() { l.run(t, calm) })
		dir := t.TempDir()
		reading, stopReading := context.WithCancel(t.Context())
		for range 2 {
			fleet.Go(func() { archiveAll(reading, t, server, dir, false) })
		}

		policy := smallShards
		policy.MergeWindows, policy.MergeCooldown, policy.MaxShards = 2, time.Second, 6
		cfg := reshard.AutoscaleConfig{
			Policy: policy, Apply: true, Every: 10 * time.Second, Window: 6 * time.Second,
			Throttles: l.throttles(),
		}
		kills := 0
		// Each first split and each first merge is the last that its process does.
		s := &scaler{t: t, client: client, cfg: cfg}
		dead := map[plan.StepKind]bool{}
		s.onStep = func(e reshard.Event) {
			if e.State == reshard.StepBegun && !dead[e.Step.Kind] {
				dead[e.Step.Kind] = true
				kills++
				s.stop()
			}
		}
		s.start()
		restart := func() {
			select {
			case err := <-s.done:
				if err != nil {
					t.Errorf("the autoscaler that was stopped: %v", err)
				}
				s.cfg.Throttles = l.throttles()
				s.start()
			default:
			}
		}
		refused := func() uint64 { return p.Stats().Throttled }
		seen, at := refused(), time.Now()
		s.until("nothing is refused any more", 10*time.Minute, func() bool {
			restart()
			if now := refused(); now != seen {
				seen, at = now, time.Now()
			}
			return seen > 0 && time.Since(at) > 20*time.Second && len(layout(t, client)) > 2
		})
		peak := len(layout(t, client))
		l.mu.Lock()
		l.perStep = 0
		l.all = append([]put(nil), l.all...)
		l.mu.Unlock()
		s.until("one shard is left", 10*time.Minute, func() bool {
			restart()
			return len(layout(t, client)) == 1
		})
		s.end()
		close(calm)
		busy.Wait()
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		stopReading()
		fleet.Wait()
		archiveAll(t.Context(), t, server, dir, true)
		for _, e := range s.of(reshard.EventDecided) {
			records := 0.0
			for _, p := range e.Sample.Points {
				records += float64(p.Also) / 1000
			}
			if all := float64(e.Observed.Records); records > 1.01*all || records < 0.98*all {
				t.Errorf("a sample of %.1f records, and %.0f were seen", records, all)
			}
		}
		report, err := archive.Verify(t.Context(), dir, archive.VerifyOptions{
			Records: l.puts(), Ordered: true,
			Identify: func(r *runnel.Record) (string, bool) {
				id, _, ok := strings.Cut(string(r.Data), " ")
				return id, ok
			},
		})
		if err != nil || !report.OK() || report.Source.Doubled.Count > 0 ||
			report.Records != int64(len(l.all)) {
			t.Errorf("of %d records: %+v, %+v, %v", len(l.all), report, report.Source, err)
		}
		if kills != 2 || peak > 6 {
			t.Errorf("%d kills, %d shards at the peak", kills, peak)
		}
		t.Logf("%d records, %d refused, %d shards at the peak, %d decisions, %d kills",
			len(l.all), seen, peak, len(s.of(reshard.EventDecided)), kills)
	})
}

// archiveAll runs a worker that archives the stream; with once, up to the present end.
func archiveAll(
	ctx context.Context, t *testing.T, server *runneltest.Server, dir string, once bool,
) {
	to, err := archive.New(archive.Config{Dir: dir})
	if err != nil {
		t.Error(err)
		return
	}
	worker, err := consumer.New(consumer.Config{
		Stream: stream, App: "orders-archive", Kinesis: server.Kinesis(),
		DynamoDB: server.DynamoDB(), Sink: to, PollInterval: 3 * time.Second, Once: once,
	})
	if err == nil {
		err = worker.Run(ctx)
	}
	if err != nil {
		t.Errorf("archive: %v", err)
	}
}

// steady puts so many bytes a second, to keys all over, until the test's end.
func steady(t *testing.T, client *kinesis.Client, bytes int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	busy.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			in := &kinesis.PutRecordsInput{StreamName: aws.String(stream)}
			for j := range 10 {
				in.Records = append(in.Records, types.PutRecordsRequestEntry{
					PartitionKey: aws.String(fmt.Sprint("k", i%7, j)), Data: make([]byte, bytes/10),
				})
			}
			_, _ = client.PutRecords(ctx, in) // faults and the end may keep it from it
			_ = sleep(ctx, time.Second)
		}
	})
	return func() { cancel(); busy.Wait() }
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Without Apply the decisions are the same without a change; with Once there is one decision.
func TestAutoscaleDryRun(t *testing.T) {
	inBubble(t, 1, "", func(t *testing.T, _ *runneltest.Server, client *kinesis.Client) {
		stop := steady(t, client, 2*shardLimit)
		defer stop()
		s := &scaler{t: t, client: client, cfg: reshard.AutoscaleConfig{Policy: smallShards}}
		began := time.Now()
		s.start()
		s.until("five rounds", 10*time.Minute, func() bool { return len(s.of(reshard.EventDecided)) >= 5 })
		s.end()
		if took := time.Since(began); took < 4*time.Minute || took > 6*time.Minute {
			t.Errorf("five rounds took %s, want one a minute", took)
		}
		for i, e := range s.of(reshard.EventDecided) {
			if want := map[bool]reshard.Action{true: reshard.ActionSplit, false: reshard.ActionHold}[i > 0]; e.Decision.Action != want ||
				e.Sample.Took != 30*time.Second || e.At.IsZero() ||
				e.Observed.Bytes < 50*shardLimit || e.Observed.Bytes > 70*shardLimit {
				t.Errorf("round %d: %+v", i, e.Decision)
			}
		}
		s.cfg.Once = true
		s.events = nil
		s.start()
		if err := <-s.done; err != nil || len(s.events) != 1 ||
			s.events[0].Decision.Action != reshard.ActionSplit {
			t.Errorf("once: %v, %+v", err, s.events)
		}
		if n := len(layout(t, client)); n != 1 {
			t.Errorf("%d shards after a dry run", n)
		}
		s.cfg.Apply = true
		s.start()
		if err := <-s.done; err != nil || len(layout(t, client)) != 3 {
			t.Errorf("once, done: %v, %d shards", err, len(layout(t, client)))
		}
		applied, stepped := s.of(reshard.EventApplied), s.of(reshard.EventStepped)
		if len(applied) != 1 || len(applied[0].Decision.Plan.Final) != 3 || len(stepped) != 4 ||
			stepped[3].Number != 2 || stepped[3].Of != 2 || stepped[3].State != reshard.StepDone {
			t.Errorf("%d applied, steps %+v", len(applied), stepped)
		}
	})
}

var errFeed = errors.New("the feed is out")

// beginnings counts the shards whose observation has begun.
type beginnings struct {
	*kinesis.Client
	begun atomic.Int64
}

func (b *beginnings) GetShardIterator(
	ctx context.Context, in *kinesis.GetShardIteratorInput, o ...func(*kinesis.Options),
) (*kinesis.GetShardIteratorOutput, error) {
	b.begun.Add(1)
	return b.Client.GetShardIterator(ctx, in, o...)
}

// Outages, throttling, a failing feed and a reshard by another program are reported, and the
// rounds go on.
func TestAutoscaleGoesOn(t *testing.T) {
	faults := "seed=5 GetRecords:throttle%20,ListShards:error-503%20,SplitShard:throttle@1"
	inBubble(t, 1, faults, func(t *testing.T, server *runneltest.Server, client *kinesis.Client) {
		stop := steady(t, client, shardLimit*9/10)
		defer stop()
		calls := 0
		reads := &beginnings{Client: client}
		s := &scaler{t: t, client: reads, cfg: reshard.AutoscaleConfig{
			Policy: smallShards, Apply: true,
			Throttles: func(context.Context) (reshard.Throttled, error) {
				if calls++; calls%2 == 0 {
					return reshard.Throttled{Refused: 1e6}, errFeed
				}
				return reshard.Throttled{}, nil
			},
		}}
		s.start()
		s.until("two shards", 10*time.Minute, func() bool { return len(layout(t, client)) == 2 })
		for _, e := range s.of(reshard.EventDecided) {
			if e.Decision.Peak > 1 {
				t.Errorf("what a failed feed has said counts: %+v", e.Decision)
			}
		}
		if failed := s.of(reshard.EventFailed); len(failed) < 2 || !errors.Is(failed[0].Err, errFeed) {
			t.Errorf("failed: %v", failed)
		}
		// Another program reshards the stream within a window. Between two windows a reshard is
		// not noticed.
		begun := reads.begun.Load()
		s.until("a window", 5*time.Minute, func() bool { return reads.begun.Load() > begun })
		planned, err := plan.Uniform(layout(t, client), 5, 0)
		if err == nil {
			err = reshard.Apply(t.Context(), client, stream, planned, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.until("merged", 30*time.Minute, func() bool { return len(layout(t, client)) == 4 })
		// Nothing answers for a while.
		if err := server.SetFaults("ListShards:error-503"); err != nil {
			t.Fatal(err)
		}
		before := len(s.of(reshard.EventDecided))
		time.Sleep(5 * time.Minute)
		if err := server.SetFaults(""); err != nil {
			t.Fatal(err)
		}
		s.until("decided again", 5*time.Minute, func() bool {
			return len(s.of(reshard.EventDecided)) > before+1
		})
		s.end()
		// A window that was cut short is followed by another one at once.
		var cut time.Time
		for _, e := range s.events {
			if errors.Is(e.Err, errFeed) {
				continue
			}
			if e.Kind == reshard.EventDecided && !cut.IsZero() && e.At.Sub(cut) > 40*time.Second {
				t.Errorf("%s from a window that was cut short to a decision", e.At.Sub(cut))
			}
			if cut = (time.Time{}); errors.Is(e.Err, reshard.ErrResharded) {
				cut = e.At
			}
		}
		reshards, outages := 0, 0
		for _, e := range s.of(reshard.EventFailed) {
			if errors.Is(e.Err, reshard.ErrResharded) {
				reshards++
			} else if !errors.Is(e.Err, errFeed) {
				outages++
			}
		}
		if reshards == 0 || outages == 0 {
			t.Errorf("%d reshards and %d outages were reported", reshards, outages)
		}
	})
}

// A stream that is deleted meanwhile ends it.
func TestAutoscaleRefusesWhatIsGone(t *testing.T) {
	inBubble(t, 1, "", func(t *testing.T, _ *runneltest.Server, client *kinesis.Client) {
		s := &scaler{t: t, client: client}
		s.start()
		s.until("a round", 5*time.Minute, func() bool { return len(s.of(reshard.EventDecided)) > 0 })
		if _, err := client.DeleteStream(t.Context(),
			&kinesis.DeleteStreamInput{StreamName: aws.String(stream)}); err != nil {
			t.Fatal(err)
		}
		var missing *types.ResourceNotFoundException
		select {
		case err := <-s.done:
			if !errors.As(err, &missing) {
				t.Errorf("got %v", err)
			}
		case <-time.After(10 * time.Minute):
			t.Error("it goes on without a stream")
			s.end()
		}
	})
}

// A lasting error ends it: no stream, a stream in on-demand mode, an invalid configuration.
func TestAutoscaleRefuses(t *testing.T) {
	inBubble(t, 1, "", func(t *testing.T, _ *runneltest.Server, client *kinesis.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		refuses := func(stream string, cfg reshard.AutoscaleConfig, want string) {
			t.Helper()
			cfg.Stream, cfg.Kinesis = stream, client
			err := reshard.Autoscale(ctx, cfg)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		refuses("nowhere", reshard.AutoscaleConfig{}, "ResourceNotFoundException")
		refuses(stream, reshard.AutoscaleConfig{Window: time.Hour}, "Window is 1h0m0s")
		refuses(stream, reshard.AutoscaleConfig{Policy: reshard.Policy{Target: 7}}, "Target is 7")
		arn, err := client.DescribeStreamSummary(t.Context(),
			&kinesis.DescribeStreamSummaryInput{StreamName: aws.String(stream)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.UpdateStreamMode(t.Context(), &kinesis.UpdateStreamModeInput{
			StreamARN:         arn.StreamDescriptionSummary.StreamARN,
			StreamModeDetails: &types.StreamModeDetails{StreamMode: types.StreamModeOnDemand},
		}); err != nil {
			t.Fatal(err)
		}
		refuses(stream, reshard.AutoscaleConfig{}, reshard.ErrOnDemand.Error())
	})
}
