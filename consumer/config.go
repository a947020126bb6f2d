package consumer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/dynamotable"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/sink"
)

// KinesisAPI is the part of the AWS SDK's Kinesis client that a worker uses.
type KinesisAPI interface {
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput,
		...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (
		*kinesis.ListShardsOutput, error)
	GetShardIterator(context.Context, *kinesis.GetShardIteratorInput,
		...func(*kinesis.Options)) (*kinesis.GetShardIteratorOutput, error)
	GetRecords(context.Context, *kinesis.GetRecordsInput, ...func(*kinesis.Options)) (
		*kinesis.GetRecordsOutput, error)
}

// Config configures a Worker. The zero value of an optional field means its default.
type Config struct {
	// Stream is the stream's name or ARN; required. Leases and batches have the name.
	Stream string
	// App is the application's name; it names the lease table. Required. All workers of a
	// fleet have the same one.
	App string
	// WorkerID names this worker in the lease table. It must be unique in the fleet, and should be
	// new with every process: if two workers have the same name, each takes the other's leases for
	// its own. At most 1024 bytes of UTF-8 without control characters. Default: the host's name,
	// the process id and a random part.
	WorkerID string
	// Static says that WorkerID outlives the process, and WorkerID is then required. When the
	// worker stops it checkpoints and keeps its leases, and the next process of that name goes on
	// with them at once, also after a crash. No other worker takes them before Failover or Absence
	// is over. Of two live processes of one name the younger goes on, and the older ends with
	// ErrReplaced.
	Static bool
	// Absence is for how long a static worker may be away before others take its leases; default
	// Failover, at most 24 h. After a crash its shards wait for as long. Java workers ignore it.
	Absence time.Duration

	Kinesis  KinesisAPI        // required
	DynamoDB lease.DynamoDBAPI // required

	// Exactly one of these four takes the records.

	// Handler gets batches. A batch counts as processed when it returns nil.
	Handler Handler
	// Record gets one record at a time, several keys of a shard at once if Parallel says so. The
	// records of one partition key come one after the other, in order. A record counts as processed
	// when it returns nil. The checkpoint is below the shard's lowest unfinished record; others may
	// be up to 10,000 records ahead of that, as far as Buffer allows, and come again after a crash.
	// After an error the same r comes again.
	Record func(ctx context.Context, r *runnel.Record) error
	// NewProcessor makes a Processor for a shard that the worker begins to read. After an error it
	// is called again, with growing pauses.
	NewProcessor func(ctx context.Context, s Shard) (Processor, error)
	// Sink commits records and positions by itself.
	Sink sink.Sink

	// Parallel is how many keys of a shard Record gets at a time; default 1.
	Parallel int
	// OnError is the treatment of a record on which the handler fails; default: it is tried for
	// ever, and the shard waits. It must not be set with Sink.
	OnError ErrorPolicy

	// OnGap is called where records may be missing (Batch.Gap), also if no record follows there,
	// before the shard goes on. An error or a panic stops the shard: OnGap is called again, with
	// growing pauses. Default nil: the shard goes on. Not with Sink, which gets each gap itself.
	OnGap func(runnel.ShardID, sink.Gap) error

	// Output names where the handler keeps its results, such as "the DynamoDB table edits", if all
	// workers of the application must keep them there. The first worker's choice holds for the
	// lease table. Run of a worker with another one returns an error that matches
	// lease.ErrOtherOutput, before the worker reads anything. Default "": it is not checked.
	Output string

	// Fanout makes the worker read by enhanced fan-out; nil: by polling.
	Fanout *Fanout

	// From is where to begin without a checkpoint: with the oldest record, at a time, or from now
	// on; default runnel.FromOldest. The choice of the fleet's first worker holds for the table.
	// FromLatest begins at the time of the stream's answer to that worker, in whole seconds of the
	// stream's clock: no later record is missed, and some may be up to a second older.
	From runnel.From
	// Once ends Run when every record that was in the stream at its start has been processed, by
	// this worker or by others of the fleet. A shard that is paused by its lease row is waited for.
	Once bool

	// Void is the policy for an aggregate that holds a record with a hash key of another shard;
	// default VoidAuto.
	Void VoidPolicy
	// KeepDoubles delivers the doubles of units, too: the units that the producer sent again
	// because it had no answer. The worker then reads no records again to find doubles, and a sink
	// gets no state.
	KeepDoubles bool

	// Failover is how long a worker may be silent before others take its leases. All workers of a
	// fleet, Java ones included, should have the same value. Default 10 s, at least 100 ms.
	Failover time.Duration
	// MaxLeases is the largest number of shards that the worker reads; default 0, no limit. Shards
	// beyond the limits of all workers are not read, and reported (EventUnclaimed).
	MaxLeases int
	// PollInterval is the longest pause between two reads of an idle shard; default 500 ms, and 250
	// ms where reads have no limit.
	PollInterval time.Duration
	// ReadRate is the highest number of GetRecords calls a second and shard. The worker reads less
	// while it is throttled, since other applications share AWS's limits, and then more again. Up
	// to a rate of 5 the worker also keeps to AWS's 2 MiB a second and shard; above, to more in
	// proportion, for servers with other limits. Default 5, AWS's limit, or none if Kinesis is a
	// client whose BaseEndpoint is a loopback address.
	ReadRate float64
	// MaxRecords is the largest number of records of one read and one batch; default and limit
	// 10,000. A batch can exceed it only by the records of its last Kinesis record, since an
	// aggregate is not divided.
	MaxRecords int
	// Buffer bounds the memory in bytes of all records that the worker has read and its handlers
	// have not finished; a record of 100 bytes counts 312. Each shard that it reads counts 32 KiB,
	// all of them at most half of Buffer. The rest is divided into equal shares; a shard has one
	// record at least, and a batch half a share at most. A shard with a quick handler may read
	// more at once, up to a sixteenth of Buffer. If others wait for room after a second, it
	// discards the part that is not in a batch, and reads that again. Default 64 MiB, at least 1
	// MiB.
	Buffer int64
	// CheckpointInterval is the shortest time between two checkpoints of a shard in the table;
	// default and limit half the failover time, when the lease is renewed anyway. A hand-over, a
	// stop and the end of a shard do not wait for it. Records processed since the last checkpoint
	// come again after a crash.
	CheckpointInterval time.Duration
	// AuditInterval is the time between two comparisons of the stream's shards with the table's;
	// default 2 min. Splits and merges do not wait for it.
	AuditInterval time.Duration
	// CallTimeout is the time that one read may take; default 20 s.
	CallTimeout time.Duration
	// StartTimeout is how long Run tries to reach stream and table at the start;
	// default 30 s.
	StartTimeout time.Duration
	// HandOverTimeout is the time to finish the work in hand when another worker should have a
	// shard; default 30 s. Then the handler's context ends, and the last checkpoint is passed.
	HandOverTimeout time.Duration
	// ShutdownTimeout is the time to finish the work in hand and hand over the leases; default 30
	// s.
	ShutdownTimeout time.Duration

	// CloudWatch publishes the numbers of Status there; default nil, not at all.
	CloudWatch *CloudWatch

	// Logger logs failures that are tried again, for each shard at most once every 10 s. Default
	// slog.Default().
	Logger *slog.Logger
	// OnEvent is called for every event, by several goroutines at once. It must be quick. It may
	// call Worker.Pause and Worker.Resume, but must not wait for Seek or Release.
	OnEvent func(Event)
}

// longestName limits WorkerID, which is a key of the table's index by owner (DynamoDB, "Constraints
// in Amazon DynamoDB": 2048 bytes, or 1024 as a sort key), and a part of attributes' names.
const longestName = 1024

const maxRecords = 10_000 // of a GetRecords call (AWS, "GetRecords": Limit)

func (c Config) withDefaults() Config {
	if c.WorkerID == "" {
		host, _ := os.Hostname()
		c.WorkerID = fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:8])
	}
	defaultTo(&c.Failover, 10*time.Second)
	defaultTo(&c.PollInterval, c.defaultPollInterval())
	defaultTo(&c.CheckpointInterval, c.Failover/2)
	defaultTo(&c.AuditInterval, 2*time.Minute)
	defaultTo(&c.CallTimeout, 20*time.Second)
	defaultTo(&c.StartTimeout, 30*time.Second)
	defaultTo(&c.HandOverTimeout, 30*time.Second)
	defaultTo(&c.ShutdownTimeout, 30*time.Second)
	if c.MaxRecords == 0 {
		c.MaxRecords = maxRecords
	}
	if c.Buffer == 0 {
		c.Buffer = 64 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.OnEvent == nil {
		c.OnEvent = func(Event) {}
	}
	return c
}

func defaultTo(field *time.Duration, value time.Duration) {
	if *field == 0 {
		*field = value
	}
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("consumer: "+format, args...))
		}
	}
	fault(c.Stream == "", "Stream is missing: want the stream's name or ARN")
	if err := streamref.Check(c.Stream); err != nil {
		fault(true, "Stream is %q, %v", c.Stream, err)
	}
	fault(len(c.WorkerID) > longestName, "WorkerID has %d bytes: want %d or less", len(c.WorkerID),
		longestName)
	fault(!utf8.ValidString(c.WorkerID) || strings.ContainsFunc(c.WorkerID, unicode.IsControl),
		"WorkerID is %q: want UTF-8 without control characters, such as line breaks", c.WorkerID)
	fault(c.Static && c.WorkerID == "",
		"Static is set without a WorkerID: want a name that this worker has in every process")
	fault(c.Absence != 0 && !c.Static, "Absence is set without Static")
	fault(c.Absence < 0 || c.Absence > lease.LongestAbsence,
		"Absence is %s: want 0 (for Failover) to %s", c.Absence, lease.LongestAbsence)
	fault(c.App == "", "App is missing: want the application's name, which names the lease table")
	if err := dynamotable.CheckName(c.App); c.App != "" && err != nil {
		fault(true, "App: %v", err)
	}
	fault(c.Kinesis == nil, "Kinesis is missing: want a *kinesis.Client")
	fault(c.DynamoDB == nil, "DynamoDB is missing: want a *dynamodb.Client")
	c.handlerFaults(fault)
	c.CloudWatch.faults(fault)
	fault(c.From.Sequence() != "", "From is the sequence number %s: want the oldest record, "+
		"the latest or a time", c.From.Sequence())
	fault(c.Void < VoidAuto || c.Void > VoidStop,
		"Void is %d: want VoidAuto, VoidDrop, VoidDeliver or VoidStop", int(c.Void))
	fault(c.Failover != 0 && c.Failover < 100*time.Millisecond,
		"Failover is %s: want 100ms or more", c.Failover)
	fault(c.MaxLeases < 0, "MaxLeases is %d: want 0 (no limit) or more", c.MaxLeases)
	fault(c.MaxRecords < 0 || c.MaxRecords > maxRecords,
		"MaxRecords is %d: want 1 to %d", c.MaxRecords, maxRecords)
	fault(c.Buffer != 0 && c.Buffer < 1<<20, "Buffer is %d bytes: want 1 MiB or more", c.Buffer)
	faults = append(faults, c.checkFanout()...)
	fault(!isRate(c.ReadRate),
		"ReadRate is %g: want 0 (the default) or more calls a second and shard", c.ReadRate)
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"PollInterval", c.PollInterval},
		{"CheckpointInterval", c.CheckpointInterval},
		{"AuditInterval", c.AuditInterval},
		{"CallTimeout", c.CallTimeout},
		{"StartTimeout", c.StartTimeout},
		{"HandOverTimeout", c.HandOverTimeout},
		{"ShutdownTimeout", c.ShutdownTimeout},
	} {
		fault(d.value < 0, "%s is %s: want 0 (the default) or more", d.name, d.value)
	}
	return errors.Join(faults...)
}

func (c Config) handlerFaults(fault func(bool, string, ...any)) {
	var set []string
	for _, form := range []struct {
		name string
		set  bool
	}{
		{"Handler", c.Handler != nil},
		{"Record", c.Record != nil},
		{"NewProcessor", c.NewProcessor != nil},
		{"Sink", c.Sink != nil},
	} {
		if form.set {
			set = append(set, form.name)
		}
	}
	fault(len(set) == 0,
		"Handler is missing: want exactly one of Handler, Record, NewProcessor and Sink")
	fault(len(set) > 1, "%s are set: want exactly one of Handler, Record, NewProcessor and Sink",
		strings.Join(set, " and "))
	fault(c.OnGap != nil && c.Sink != nil, "OnGap is set with Sink: a sink gets the gaps itself")
	fault(c.Parallel < 0, "Parallel is %d: want 1 or more", c.Parallel)
	fault(c.Parallel != 0 && c.Record == nil, "Parallel is set without Record: only a Record "+
		"handler gets several keys at a time")
	fault(!c.OnError.isZero() && c.Sink != nil, "OnError is set with Sink: a sink has a policy "+
		"of its own")
	c.OnError.faults(fault)
}
