package cli

import (
	"context"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/reshard"
)

// A shard takes 1 MiB and 1,000 records a second (AWS, "Quotas and limits").
const (
	shardBytes   = 1 << 20
	shardRecords = 1000
)

// recordWeight is the weight of a Kinesis record in a load by records. The user records of an
// aggregate share it.
const recordWeight = 1000

// loadFlags are the flags for the source of a load, a stream or files, and for its unit.
type loadFlags struct {
	sample, last, over time.Duration
	by                 string
	target             float64
	top, parallel      int
	key, format        string
}

func (f *loadFlags) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.DurationVar(&f.sample, "sample", 30*time.Second, "how long to look at what arrives")
	flags.DurationVar(&f.last, "last", 0, "look at what arrived in that time instead, all of it")
	flags.DurationVar(&f.over, "over", 0, "with files: in what time their records arrive")
	flags.IntVar(&f.top, "top", 5, "how many hot keys to show")
	flags.IntVar(&f.parallel, "parallel", 32, "how many shards to read at the same time")
}

func (f *loadFlags) validate() error {
	switch {
	case f.by != "bytes" && f.by != "records":
		return exit.Usage("--by %s: want bytes or records", f.by)
	case !(f.target > 0 && f.target <= 1):
		return exit.Usage("--target %g: want a part of what a shard takes, as 0.7", f.target)
	case f.sample <= 0 || f.last < 0 || f.over < 0:
		return exit.Usage("--sample, --last and --over cannot be below 0")
	case f.top < 0 || f.parallel < 1:
		return exit.Usage("--top cannot be below 0, --parallel not below 1")
	}
	return nil
}

// takes returns a shard's limit over that time, in the unit of the load: bytes, or recordWeight
// for a record.
func (f *loadFlags) takes(took time.Duration) float64 {
	if f.by == "records" {
		return recordWeight * shardRecords * took.Seconds()
	}
	return shardBytes * took.Seconds()
}

// perSecond formats a load as a rate.
func (f *loadFlags) perSecond(load uint64, took time.Duration) string {
	return f.amount(float64(load)/took.Seconds()) + "/s"
}

// amount formats a load in the unit that suits.
func (f *loadFlags) amount(load float64) string {
	if f.by != "records" {
		return console.Bytes(load)
	}
	load /= recordWeight
	switch {
	case load == 1:
		return "1 record"
	case load >= 999.95: // and not 1000.0
		return console.Thousands(int64(math.Round(load))) + " records"
	default:
		return console.Few(load) + " records"
	}
}

// seenLoad is an observed load: of a stream, or of files.
type seenLoad struct {
	load           *load.Histogram // nil if no plan is made
	skews          []*load.Skew    // of the layouts in question; the first has the hot keys
	took           time.Duration
	records, bytes uint64 // of lines that weigh otherwise, how many and how long
}

// The number of counted cells of the key space, and of counted keys: some 10 MiB.
const (
	loadCells    = 1 << 17
	loadCounters = 4096
)

// seeLoad measures the load for a plan of the stream's shards.
func (a *app) seeLoad(
	ctx context.Context, client *kinesis.Client, of *shardsOf, f *loadFlags, files []string,
	shards []reshard.Shard,
) (*seenLoad, error) {
	skew, err := load.NewSkew(reshard.Open(shards), loadCounters)
	if err != nil {
		return nil, exit.Outside(err)
	}
	seen := &seenLoad{
		load: load.NewHistogram(loadCells), skews: []*load.Skew{skew}, took: f.over,
	}
	if len(files) > 0 {
		format, err := input.New(input.Fields{Format: f.format, Key: f.key})
		if err != nil {
			return nil, err
		}
		return seen, seen.readFiles(ctx, f, format, files)
	}
	return seen, a.observe(ctx, client, of.stream, f, seen)
}

// observe adds the observed load of a stream.
func (a *app) observe(
	ctx context.Context, client *kinesis.Client, stream string, f *loadFlags, seen *seenLoad,
) error {
	window := reshard.Window{For: f.sample, Last: f.last, Parallel: f.parallel}
	if f.last == 0 {
		a.Say("watching stream %s for %s", stream, f.sample)
	}
	observed, err := reshard.Observe(ctx, client, stream, window, func(s reshard.Seen) {
		seen.add(f, s.Hash, s.Key, s.Bytes, s.Of)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return exit.ErrInterrupt
	case err != nil:
		return exit.Outside(endpoint.Hint(err, stream))
	}
	seen.took, seen.records, seen.bytes = observed.Took, observed.Records, observed.Bytes
	if observed.Records == 0 {
		a.Say("no record was seen in %s", observed.Took)
	}
	if percent := guessedPercent(observed); percent >= 0.1 {
		a.Say("%.1f%% of the load was put with explicit hash keys, which readers are not told: "+
			"where in its shard it falls is a guess", percent)
	}
	return nil
}

// readFiles adds the lines of files as the records that they would be. Lines that say what they
// weigh weigh that, in what counts.
func (s *seenLoad) readFiles(
	ctx context.Context, f *loadFlags, format *input.Format, files []string,
) error {
	return format.Read(ctx, files, func(l input.Line) error {
		s.records++
		bytes := len(l.Key) + len(l.Data)
		s.bytes += uint64(bytes)
		switch {
		case !format.Weighs():
			s.add(f, l.Hash(), l.Key, bytes, 1)
		case f.by == "records" && l.Weight > math.MaxUint64/recordWeight:
			return exit.Usage("%s: %d records are too many", l.Where(), l.Weight)
		case f.by == "records":
			s.addWeight(l.Hash(), l.Key, recordWeight*l.Weight)
		default:
			s.addWeight(l.Hash(), l.Key, l.Weight)
		}
		return nil
	})
}

// add adds a user record, one of so many that share a Kinesis record.
func (s *seenLoad) add(f *loadFlags, hash keyspace.Key, key string, bytes, of int) {
	weight := uint64(bytes)
	if f.by == "records" {
		weight = max(1, recordWeight/uint64(of))
	}
	s.addWeight(hash, key, weight)
}

func (s *seenLoad) addWeight(hash keyspace.Key, key string, weight uint64) {
	for _, skew := range s.skews {
		skew.Add(hash, key, weight)
	}
	if s.load != nil {
		s.load.Add(hash, weight)
	}
}

// weight returns the weight of the whole observed load.
func (s *seenLoad) weight() float64 { return float64(s.skews[0].Total()) }

// told returns the load in the form that is printed.
func (s *seenLoad) told(f *planFlags, goal plan.Goal, shards []reshard.Shard) *planLoad {
	report := s.skews[0].Report(goal.Target, f.top)
	l := &planLoad{
		Unit: "bytes", Seconds: s.took.Seconds(), Target: goal.Target, Records: s.records,
		Bytes: s.bytes, PeakToMean: report.PeakToMean, Gini: report.Gini, report: report,
		text: func(load uint64) string { return f.perSecond(load, s.took) },
	}
	if f.by == "records" {
		l.Unit = "records/1000"
	}
	names := shardNames(shards)
	for _, hot := range report.Hot {
		key := hotKey{Key: hot.Name, Alone: hot.Alone}
		key.Share = float64(hot.AtLeast()) / float64(max(1, report.Total))
		key.Shard = string(names[report.Shards[hot.Shard].Range])
		l.Hot = append(l.Hot, key)
	}
	return l
}

// guessedPercent returns the percentage of the load with a guessed hash key in its shard.
func guessedPercent(o reshard.Observed) float64 {
	return 100 * float64(o.Guessed) / float64(max(1, o.Bytes))
}
