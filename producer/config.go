package producer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/seam"
)

// KinesisAPI is what the producer needs of Kinesis; *kinesis.Client has it.
//
// The producer switches the SDK's own retries off in each call, since they would send a stored
// batch again unseen. An implementation must not retry either, must return soon after its
// context has ended, and must not use the input after it has returned.
type KinesisAPI interface {
	PutRecords(ctx context.Context, input *kinesis.PutRecordsInput,
		options ...func(*kinesis.Options)) (*kinesis.PutRecordsOutput, error)
	// PutRecord is called in OrderChained only.
	PutRecord(ctx context.Context, input *kinesis.PutRecordInput,
		options ...func(*kinesis.Options)) (*kinesis.PutRecordOutput, error)
}

// The API's limits (AWS, "PutRecords" and "UpdateMaxRecordSize").
const (
	apiBatchRecords   = 500      // records in a call
	apiBatchBytes     = 10 << 20 // bytes in a call, partition keys included
	apiMinRecordBytes = 1 << 20  // the record limit of a stream that never had it raised
	apiMaxRecordBytes = 10 << 20 // the highest record limit that a stream can have
)

// unitBytes is the default of MaxUnitBytes: at a round trip of 20 ms a lane then gets 12 MiB a
// second, far more than a shard takes, and a reader of one unit waits for little.
const unitBytes = 256 << 10

// Config says where a Producer puts records and how hard it tries. Stream and Kinesis are
// needed; every other field's zero value is its default.
type Config struct {
	// Stream is the stream's name or its ARN. Needed.
	Stream string
	// Kinesis makes the calls, with the credentials and the endpoint that it was made with.
	// Needed.
	Kinesis KinesisAPI

	// Order is what is promised of the order of records, and how they are packed. Default
	// OrderKey.
	Order Order
	// Reader looks up what became of units that had no answer for aggregate.H; usually it is the
	// client above. It is also asked for the stream's time, by a ListShards of one shard, before
	// the first unit of a run goes out, and again after a pause. Nil, or one that is not allowed to
	// read: their records are reported with ErrUnresolved. In OrderNone and OrderShard it lists the
	// shards too, and is needed. Default none.
	Reader Reader
	// Journal keeps units from before they are first sent until they are settled, in OrderKey,
	// OrderShard and OrderNone. Default none.
	Journal Journal
	// Resume is the units of earlier runs that their Journal has not been told the end of, in
	// the order of their Frozen. They are sent first, as the same bytes under the identity that
	// they have, and before anything newer of their lanes; those first sent longer than
	// aggregate.H ago are looked up, and so are those of which that is not known. The run that left
	// them must have ended. Order must be that of the run which left them, where OrderKey and
	// OrderShard are the same. The Journal is not told of them again, but of their ends. Their
	// records go to OnResult, count in Stats, and take no room in the buffer.
	Resume []FrozenUnit

	// Keys gives explicit hash keys to records that come without one, as an keytable.Session does:
	// for these Put asks it, and may wait for it. Records of Resume keep the keys that they have,
	// and so do aggregated records: readers drop one whose shard is not that of the keys in it.
	// Default none.
	Keys Keys

	// MaxInFlight is how many calls run at the same time. Default 8, from 1 to 1,000.
	MaxInFlight int
	// MaxBatchRecords is how many Kinesis records a call carries. Default 500, from 1 to 500.
	MaxBatchRecords int
	// MaxBatchBytes is how much data and keys a call carries. Default 5 MiB, or
	// MaxRecordBytes where that is more; in bytes, from MaxRecordBytes to 10 MiB.
	MaxBatchBytes int
	// MaxRecordBytes is the stream's limit for the data and the partition key of a record. A
	// record that leaves no room for an identity within it goes as it is, alone and without one;
	// with a Journal it is refused. Default: the stream's own (UpdateMaxRecordSize), which
	// the Reader is asked for when a record needs more than is known, and 1 MiB without a
	// Reader; in bytes, up to 10 MiB.
	MaxRecordBytes int

	// MaxUnitBytes is how much of what waits in a lane goes into one unit, with its key, in
	// OrderKey, and how much a Kinesis record holds in OrderShard and OrderNone. Larger records
	// have a unit of their own. Default 256 KiB, or MaxRecordBytes where that is less; in bytes,
	// from 1 to MaxRecordBytes.
	MaxUnitBytes int

	// MaxBufferedRecords is how many records the producer holds, from Put to the end of their
	// callback. It is also the window in which distinct keys are found to fill a call with.
	// Default 100,000; from 1.
	//
	// The 16 groups of lanes share it (see the package comment), so that a Put into a full group
	// delays no other Put: each group has a 32nd reserved. The other half is for all; but of it,
	// a group whose shard refuses records gets no more than a ninth, or than its part of the
	// records that are delivered. A buffer of less than 32 records has no reserves.
	MaxBufferedRecords int
	// MaxBufferedBytes is the same for their data and keys, and is shared in the same way. A
	// record that is larger than a reserve takes the rest from the common half. A unit that is
	// being sent is a copy of its records, so that the orders of units take as much again at
	// most (OrderShard with a Journal twice as much), and some 100 bytes a unit. Default 64 MiB;
	// in bytes, from MaxRecordBytes.
	MaxBufferedBytes int

	// Linger is how long a record may wait for company while a call could be made. Calls
	// fill themselves under load, when none is free; a linger buys fewer calls for latency
	// where the load is low. Flush and Close do not linger. Default 0; up to 1 minute.
	Linger time.Duration
	// CallTimeout is how long a call may take before its records count as unknown and are
	// sent again. Default 10 s, from 10 ms to 5 minutes (the life of a signature).
	CallTimeout time.Duration
	// RetryMin and RetryMax bound the wait of a record between two attempts: it doubles with
	// each from the first to the second, less up to a half at random. Where no call is
	// answered at all, one record a second (or RetryMax, if that is less) finds out when that
	// changes, and then everything goes at once. Default 50 ms and 5 s; up to 1 minute.
	RetryMin, RetryMax time.Duration
	// GiveUpAfter is how long after Put a record without an acknowledgement is given up: up to
	// a 32nd later, or, where a call is then in flight for its lane, when that has its outcome.
	// See the package comment for what that means. Default 0: never.
	GiveUpAfter time.Duration

	// OnResult is called for every record that was taken, just before the record's own
	// callback and under the same rules (see PutFunc). Default none.
	OnResult func(runnel.Record, Result)
	// OnCall is called after every call, from several goroutines at a time. It must not block.
	// Default none.
	OnCall func(CallReport)
	// Logger hears of the beginning and the end of outages, of the stream's and of the
	// Journal's, and of look-ups that fail. Default slog.Default().
	Logger *slog.Logger

	learns bool // the stream is asked for its record limit
}

// largest is how many bytes a record can have at most.
func (c *Config) largest() int {
	if c.learns {
		return apiMaxRecordBytes
	}
	return c.MaxRecordBytes
}

// withDefaults returns the Config with its zero fields set.
func (c Config) withDefaults() Config {
	setDefault(&c.MaxInFlight, 8)
	setDefault(&c.MaxBatchRecords, apiBatchRecords)
	c.learns = c.learns || c.MaxRecordBytes == 0 && c.Reader != nil
	setDefault(&c.MaxRecordBytes, apiMinRecordBytes)
	setDefault(&c.MaxBatchBytes, max(5<<20, c.MaxRecordBytes))
	setDefault(&c.MaxUnitBytes, min(unitBytes, c.MaxRecordBytes))
	setDefault(&c.MaxBufferedRecords, 100_000)
	setDefault(&c.MaxBufferedBytes, 64<<20)
	setDefault(&c.CallTimeout, 10*time.Second)
	setDefault(&c.RetryMin, 50*time.Millisecond)
	setDefault(&c.RetryMax, max(5*time.Second, c.RetryMin))
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate returns nil, or an error that names every field that is out of its limits. Zero
// fields stand for their defaults.
func (c Config) Validate() error {
	c = c.withDefaults()
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("producer: "+format, args...))
		}
	}
	fault(!validStream(c.Stream), "Stream is %q: want a stream's name (1 to 128 of "+
		"a-z, A-Z, 0-9, '_', '.', '-') or its ARN", c.Stream)
	fault(c.Kinesis == nil, "Kinesis is missing: want a *kinesis.Client")
	fault(int(c.Order) >= len(orderWords), "Order is %v: want OrderKey, OrderPlain, "+
		"OrderChained, OrderNone or OrderShard", c.Order)
	fault(c.Order.byShard() && c.Reader == nil, "Reader is missing: the order packs records "+
		"by shard and needs one to list the shards, usually the client")
	fault(c.Journal != nil && !c.Order.units(), "Journal is set and Order is %v: want OrderKey, "+
		"OrderShard or OrderNone, since only their units have an identity", c.Order)
	fault(len(c.Resume) > 0 && !c.Order.units(), "Resume has %d units and Order is %v: want "+
		"the order of the run that left them", len(c.Resume), c.Order)
	within := func(field string, value, low, high int) {
		fault(value < low || value > high, "%s is %d: want %d to %d", field, value, low, high)
	}
	within("MaxInFlight", c.MaxInFlight, 1, 1000)
	within("MaxBatchRecords", c.MaxBatchRecords, 1, apiBatchRecords)
	within("MaxRecordBytes", c.MaxRecordBytes, 1, apiMaxRecordBytes)
	within("MaxBatchBytes", c.MaxBatchBytes, c.MaxRecordBytes, apiBatchBytes)
	within("MaxUnitBytes", c.MaxUnitBytes, 1, c.MaxRecordBytes)
	within("MaxBufferedRecords", c.MaxBufferedRecords, 1, 100_000_000)
	within("MaxBufferedBytes", c.MaxBufferedBytes, c.MaxRecordBytes, 1<<40)
	during := func(field string, value, low, high time.Duration) {
		fault(value < low || value > high, "%s is %v: want %v to %v", field, value, low, high)
	}
	during("Linger", c.Linger, 0, time.Minute)
	during("CallTimeout", c.CallTimeout, 10*time.Millisecond, 5*time.Minute)
	during("RetryMin", c.RetryMin, time.Millisecond, time.Minute)
	during("RetryMax", c.RetryMax, c.RetryMin, time.Minute)
	fault(c.GiveUpAfter < 0, "GiveUpAfter is %v: want 0 (never) or more", c.GiveUpAfter)
	return errors.Join(faults...)
}

var streamName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

func validStream(stream string) bool {
	return isARN(stream) || streamName.MatchString(stream)
}

func isARN(stream string) bool { return strings.HasPrefix(stream, "arn:") }

// limits returns the part of the Config that the core goes by.
func (c Config) limits() limits {
	l := limits{
		order: c.Order, calls: c.MaxInFlight, records: c.MaxBatchRecords, bytes: c.MaxBatchBytes,
		linger: c.Linger, giveUp: c.GiveUpAfter,
		retryMin: c.RetryMin, retryMax: c.RetryMax, unit: c.MaxUnitBytes,
		window: groupWindow, horizon: seam.H(), reads: c.Reader != nil,
		journal: c.Journal != nil,
	}
	if c.Order == OrderChained {
		l.records = 1
	}
	return l
}

// backoff is the wait between the attempts of calls that carry no records.
func (c *Config) backoff() retry.Backoff {
	return retry.Backoff{Min: c.RetryMin, Max: c.RetryMax}
}
