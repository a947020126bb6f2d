package measure

import (
	"context"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
	"github.com/runnel-stream/runnel/reshard"
)

// Load is an observed load of a stream or of files.
type Load struct {
	Histogram *load.Histogram // by hash key; nil if no plan is made
	Skews     []*load.Skew    // one for each layout of shards; the first has the heaviest keys
	Took      time.Duration   // in which the load arrived; 0 if that is not known
	Records   uint64          // Kinesis records, or lines
	Bytes     uint64          // of these
}

const (
	// Counters is the number of keys that are counted. With the cells it takes about 10 MiB.
	Counters = 4096
	// cells is the number of counted parts of the key space.
	cells = 1 << 17
)

// See measures the load for a plan of the stream's shards. It reads the files, or the stream if
// there are none.
func See(
	ctx context.Context, con *console.Console, client *kinesis.Client, stream string,
	f *Flags, files []string, shards []runnel.Shard,
) (*Load, error) {
	skew, err := load.NewSkew(reshard.OpenRanges(shards), Counters)
	if err != nil {
		return nil, exit.Outside(err)
	}
	seen := &Load{
		Histogram: load.NewHistogram(cells), Skews: []*load.Skew{skew}, Took: f.Over,
	}
	if len(files) > 0 {
		format, err := input.New(input.Fields{Format: f.Format, Key: f.Key})
		if err != nil {
			return nil, err
		}
		return seen, seen.ReadFiles(ctx, f, format, files)
	}
	return seen, Observe(ctx, con, client, stream, f, seen)
}

// Observe adds the load of a stream to seen, and warns on con of guessed hash keys.
func Observe(
	ctx context.Context, con *console.Console, client *kinesis.Client, stream string,
	f *Flags, seen *Load,
) error {
	window := reshard.Window{For: f.Sample, Last: f.Last, Parallel: f.Parallel}
	if f.Last == 0 {
		con.Say("watching stream %s for %s", stream, f.Sample)
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
	seen.Took, seen.Records, seen.Bytes = observed.Took, observed.Records, observed.Bytes
	if observed.Records == 0 {
		con.Say("no record was seen in %s", observed.Took)
	}
	if percent := GuessedPercent(observed); percent >= 0.1 {
		con.Say("%.1f%% of the load was put with explicit hash keys, which readers do not see: "+
			"its places within the shards are guesses", percent)
	}
	return nil
}

// ReadFiles adds the lines of files as if each were a record. With a weight field, a line counts
// for that many records or bytes.
func (s *Load) ReadFiles(
	ctx context.Context, f *Flags, format *input.Format, files []string,
) error {
	return format.Read(ctx, files, func(l input.Line) error {
		s.Records++
		bytes := len(l.Key) + len(l.Data)
		s.Bytes += uint64(bytes)
		switch {
		case !format.Weighs():
			s.add(f, l.Hash(), l.Key, bytes, 1)
		case f.By == "records" && l.Weight > math.MaxUint64/RecordWeight:
			return exit.Usage("%s: %d records are too many", l.Where(), l.Weight)
		case f.By == "records":
			s.addWeight(l.Hash(), l.Key, RecordWeight*l.Weight)
		default:
			s.addWeight(l.Hash(), l.Key, l.Weight)
		}
		return nil
	})
}

// add adds a user record, one of so many that share a Kinesis record.
func (s *Load) add(f *Flags, hash keyspace.Key, key string, bytes, of int) {
	weight := uint64(bytes)
	if f.By == "records" {
		weight = max(1, RecordWeight/uint64(of))
	}
	s.addWeight(hash, key, weight)
}

func (s *Load) addWeight(hash keyspace.Key, key string, weight uint64) {
	for _, skew := range s.Skews {
		skew.Add(hash, key, weight)
	}
	if s.Histogram != nil {
		s.Histogram.Add(hash, weight)
	}
}

// Weight returns the weight of the whole observed load.
func (s *Load) Weight() float64 { return float64(s.Skews[0].Total()) }

// GuessedPercent returns the percentage of the load with a guessed hash key in its shard.
func GuessedPercent(o reshard.Observed) float64 {
	return 100 * float64(o.Guessed) / float64(max(1, o.Bytes))
}

// ShardIDs returns the ids of the open shards by their ranges.
func ShardIDs(shards []runnel.Shard) map[keyspace.Range]runnel.ShardID {
	ids := map[keyspace.Range]runnel.ShardID{}
	for _, s := range shards {
		if s.Open() {
			ids[s.Range] = s.ID
		}
	}
	return ids
}
