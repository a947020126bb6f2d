package measure

import (
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
)

// A shard takes 1 MiB and 1,000 records a second (AWS, "Quotas and limits").
const (
	shardBytes   = 1 << 20
	shardRecords = 1000
)

// RecordWeight is the weight of a Kinesis record in a load by records. The user records of an
// aggregate share it.
const RecordWeight = 1000

// Flags are the flags for the source of a load, a stream or files, and for its unit.
type Flags struct {
	Sample   time.Duration // how long to read a stream
	Last     time.Duration // instead, read the records of this time before now
	Over     time.Duration // in which the records of files arrive
	By       string        // bytes or records
	Target   float64       // the highest load of a shard, as a fraction of its limit
	Top      int           // how many of the heaviest keys to print
	Parallel int           // how many shards to read at the same time
	Key      string        // the field of the partition key, with files
	Format   string        // the format of files
}

// AddFlags adds those flags to a command that all loads have. --by, --target, --key and --format
// differ in their defaults, so the command adds them.
func (f *Flags) AddFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.DurationVar(&f.Sample, "sample", 30*time.Second, "how long to read the stream")
	flags.DurationVar(&f.Last, "last", 0, "read all records of this time before now instead")
	flags.DurationVar(&f.Over, "over", 0, "with files: how long their records take to arrive")
	flags.IntVar(&f.Top, "top", 5, "how many hot keys to show")
	flags.IntVar(&f.Parallel, "parallel", 32, "how many shards to read at the same time")
}

// Validate returns an error with the name of the flag that is out of range.
func (f *Flags) Validate() error {
	switch {
	case f.By != "bytes" && f.By != "records":
		return exit.Usage("--by %s: want bytes or records", f.By)
	case !(f.Target > 0 && f.Target <= 1):
		return exit.Usage("--target %g: want a part of a shard's limit, as 0.7", f.Target)
	case f.Sample <= 0 || f.Last < 0 || f.Over < 0:
		return exit.Usage("--sample, --last and --over cannot be below 0")
	case f.Top < 0 || f.Parallel < 1:
		return exit.Usage("--top cannot be below 0, --parallel not below 1")
	}
	return nil
}

// Limit returns a shard's limit over that time, in the unit of the load: bytes, or RecordWeight
// for a record.
func (f *Flags) Limit(took time.Duration) float64 {
	if f.By == "records" {
		return RecordWeight * shardRecords * took.Seconds()
	}
	return shardBytes * took.Seconds()
}

// PerSecond formats a load as a rate.
func (f *Flags) PerSecond(load uint64, took time.Duration) string {
	return f.Amount(float64(load)/took.Seconds()) + "/s"
}

// Amount formats a load in the unit that suits.
func (f *Flags) Amount(load float64) string {
	if f.By != "records" {
		return console.Bytes(load)
	}
	load /= RecordWeight
	switch {
	case load == 1:
		return "1 record"
	case load >= 999.95: // and not 1000.0
		return console.Thousands(int64(math.Round(load))) + " records"
	default:
		return console.Few(load) + " records"
	}
}
