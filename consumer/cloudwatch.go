package consumer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/runnel-stream/runnel/internal/retry"
)

// CloudWatchAPI is the part of the AWS SDK's CloudWatch client that a worker uses.
type CloudWatchAPI interface {
	PutMetricData(context.Context, *cloudwatch.PutMetricDataInput, ...func(*cloudwatch.Options)) (
		*cloudwatch.PutMetricDataOutput, error)
}

// CloudWatch publishes the numbers of Status as metrics of CloudWatch. Every 10 seconds a worker
// sends one call with a value for each lease that it holds:
//
//   - millis_behind_latest, as in ShardStatus;
//   - bytes and records, since the call before.
//
// Every second call has worker_leases, too, and that of a watcher total_leases, total_shards and
// unclaimed_leases, as in Status.
//
// The metrics have one dimension, App. So the statistics of one metric are those of the fleet: the
// Minimum of millis_behind_latest is the shard that is least behind, the Maximum of bytes is the
// hottest shard and its Average the mean of all, the Sum of worker_leases over 20 seconds is the
// number of leases that workers hold. CloudWatch does not aggregate over dimensions, and it charges
// for each combination of their values: a dimension with the worker's name would make new metrics
// with each process. See PerShard.
//
// A failed call is logged, at most once in 10 minutes, and its values are lost. Nothing else
// depends on it.
type CloudWatch struct {
	API       CloudWatchAPI // required
	Namespace string        // of the metrics; required, 1 to 255 characters
	// PerShard publishes the metrics of the leases a second time, with the dimensions App and
	// ShardId. CloudWatch charges three more metrics for each shard.
	PerShard bool
}

func (c *CloudWatch) faults(fault func(bool, string, ...any)) {
	if c == nil {
		return
	}
	fault(c.API == nil, "CloudWatch.API is missing: want a *cloudwatch.Client")
	bad := strings.ContainsFunc(c.Namespace, func(r rune) bool { return r <= ' ' || r > '~' })
	fault(c.Namespace == "" || len(c.Namespace) > 255 || bad ||
		strings.HasPrefix(c.Namespace, ":") || strings.HasPrefix(c.Namespace, "AWS/"),
		"CloudWatch.Namespace is %q: want 1 to 255 ASCII characters without spaces, and neither a "+
			"colon nor AWS/ before them", c.Namespace)
}

const (
	publishEvery   = 10 * time.Second // numbers of leases
	fleetEvery     = 2                // of these, numbers of the fleet
	publishTimeout = 3 * time.Second  // of a call
	lastPublish    = 2 * time.Second  // of the call at the end of Run
	publishQuiet   = 10 * time.Minute // between two log lines
	// AWS, "PutMetricData" and "MetricDatum".
	dataOfCall  = 1000
	valuesOfOne = 150
)

// publisher sends a worker's numbers to CloudWatch. It belongs to one goroutine.
type publisher struct {
	of     *Worker
	run    *run
	before map[int64]ShardStatus // at the last call, of each hold
	turn   int
	failed int // calls in a row
	logged time.Time
}

// publish publishes until over is closed, and then the rest unless ctx is done.
func (p *publisher) publish(ctx context.Context, over <-chan struct{}) {
	for retry.WaitOr(ctx, publishEvery, over) {
		s := p.of.Status()
		p.send(ctx, publishTimeout, append(p.fleetData(s), p.leaseData(s)...))
	}
	if ctx.Err() == nil {
		p.send(ctx, lastPublish, p.leaseData(p.of.Status()))
	}
}

// send sends data, and reports failures.
func (p *publisher) send(ctx context.Context, timeout time.Duration, all []types.MetricDatum) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var failures []error
	for data := range slices.Chunk(all, dataOfCall) {
		_, err := p.of.cfg.CloudWatch.API.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{
			Namespace: &p.of.cfg.CloudWatch.Namespace, MetricData: data,
		})
		failures = append(failures, err)
	}
	p.report(errors.Join(failures...))
}

func (p *publisher) report(err error) {
	log := p.of.cfg.Logger.With("worker", p.of.cfg.WorkerID, "stream", p.of.cfg.Stream,
		"namespace", p.of.cfg.CloudWatch.Namespace)
	if err == nil {
		if p.failed > 0 {
			log.Info("CloudWatch takes metrics again", "failures", p.failed)
		}
		p.failed, p.logged = 0, time.Time{}
		return
	}
	if p.failed++; time.Since(p.logged) >= publishQuiet {
		p.logged = time.Now()
		log.Warn("CloudWatch did not take metrics: they are lost, and nothing else is",
			"failures", p.failed, "error", err)
	}
}

func (p *publisher) dimensions(more ...types.Dimension) []types.Dimension {
	app := types.Dimension{Name: aws.String("App"), Value: &p.of.cfg.App}
	return append([]types.Dimension{app}, more...)
}

// fleetData returns the numbers of the fleet and of the worker, in every second call.
func (p *publisher) fleetData(s Status) []types.MetricDatum {
	if p.turn++; p.turn%fleetEvery != 1 {
		return nil
	}
	numbers := map[string]int{"worker_leases": s.WorkerLeases}
	if s.Watching {
		numbers["total_leases"], numbers["total_shards"] = s.TotalLeases, s.TotalShards
		numbers["unclaimed_leases"] = s.UnclaimedLeases
	}
	var data []types.MetricDatum
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		n := float64(numbers[name])
		data = append(data, datum(s.Time, p.dimensions(), name, types.StandardUnitCount, n)...)
	}
	return data
}

// leaseData returns the numbers of the leases, with the counts since the call before. Leases that
// the worker has given up since then have counts alone.
func (p *publisher) leaseData(s Status) []types.MetricDatum {
	next := make(map[int64]ShardStatus, len(s.Shards))
	var behind, bytes, records []float64
	var each []types.MetricDatum
	add := func(shard, before ShardStatus, held bool) {
		var of [3][]float64
		if held {
			of[0] = []float64{float64(shard.MillisBehindLatest)}
		}
		of[1] = []float64{float64(shard.Bytes - before.Bytes)}
		of[2] = []float64{float64(shard.Records - before.Records)}
		behind, bytes = append(behind, of[0]...), append(bytes, of[1]...)
		records = append(records, of[2]...)
		if p.of.cfg.CloudWatch.PerShard {
			named := p.dimensions(types.Dimension{
				Name: aws.String("ShardId"), Value: aws.String(string(shard.Shard)),
			})
			each = append(each, leaseData(s.Time, named, of[0], of[1], of[2])...)
		}
	}
	for _, shard := range s.Shards {
		add(shard, p.before[shard.hold], true)
		next[shard.hold] = shard
	}
	// One that was given up after Status is in both lists.
	for _, shard := range p.run.figures.givenUp() {
		before, both := next[shard.hold]
		if !both {
			before = p.before[shard.hold]
		}
		add(shard, before, false)
	}
	p.before = next
	return append(leaseData(s.Time, p.dimensions(), behind, bytes, records), each...)
}

// leaseData returns the data of leases, a value for each.
func leaseData(
	at time.Time, of []types.Dimension, behind, bytes, records []float64,
) []types.MetricDatum {
	return slices.Concat(
		datum(at, of, "millis_behind_latest", types.StandardUnitMilliseconds, behind...),
		datum(at, of, "bytes", types.StandardUnitBytes, bytes...),
		datum(at, of, "records", types.StandardUnitCount, records...))
}

// datum returns the values of one metric, in as few data as can hold them: none for no value.
func datum(
	at time.Time, of []types.Dimension, name string, unit types.StandardUnit, values ...float64,
) []types.MetricDatum {
	counts := map[float64]float64{}
	for _, value := range values {
		counts[value]++
	}
	at = at.UTC()
	var data []types.MetricDatum
	for part := range slices.Chunk(slices.Sorted(maps.Keys(counts)), valuesOfOne) {
		d := types.MetricDatum{
			MetricName: &name, Dimensions: of, Timestamp: &at, Unit: unit, Values: part,
		}
		for _, value := range part {
			d.Counts = append(d.Counts, counts[value])
		}
		data = append(data, d)
	}
	return data
}

// publishing publishes until the caller calls end, which publishes the rest. When kill is done,
// nothing is published any more.
func (w *Worker) publishing(kill context.Context, r *run) (end func()) {
	if w.cfg.CloudWatch == nil {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		p := &publisher{of: w, run: r}
		p.publish(kill, over)
	}()
	return func() {
		close(over)
		<-done
	}
}
