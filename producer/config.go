package producer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/streamref"
)

// KinesisAPI is the part of the Kinesis API that writes; *kinesis.Client implements it.
//
// The producer switches off the SDK's retries in each call, because they would send a batch again
// that may have been stored. An implementation must not retry either. It must return soon after
// its context has ended, and must not use the input after it has returned. It is called from
// several goroutines at a time.
type KinesisAPI interface {
	PutRecords(ctx context.Context, input *kinesis.PutRecordsInput,
		options ...func(*kinesis.Options)) (*kinesis.PutRecordsOutput, error)
	// PutRecord is called in OrderChained only, in place of PutRecords.
	PutRecord(ctx context.Context, input *kinesis.PutRecordInput,
		options ...func(*kinesis.Options)) (*kinesis.PutRecordOutput, error)
}

// The API's limits (AWS, "PutRecords" and "UpdateMaxRecordSize").
const (
	apiBatchRecords   = 500      // records in a call
	apiBatchBytes     = 10 << 20 // bytes in a call, partition keys included
	apiMinRecordBytes = 1 << 20  // the default record limit of a stream
	apiMaxRecordBytes = 10 << 20 // the highest record limit of a stream
)

// unitBytes is the default of MaxUnitBytes. At a round trip of 20 ms a lane then sends 12 MiB a
// second, far more than a shard takes, and a reader does not wait long for a whole unit.
const unitBytes = 256 << 10

// Config configures a Producer. Stream and Kinesis are required. The zero value of every other
// field means its default.
type Config struct {
	// Stream is the stream's name or its ARN. Required.
	Stream string
	// Kinesis makes the calls, with its own credentials and endpoint. PutRecords goes in CBOR where
	// the server understands it; docs/fleet.md describes that. Required.
	Kinesis KinesisAPI

	// Order is the promised order of the records, and the way they are packed. Default OrderKey.
	Order Order
	// Reader reads the stream; usually it is the same client as Kinesis. The producer uses it
	//
	//   - to look up units that had no answer for aggregate.H,
	//   - to get the stream's time, by a ListShards of one shard, before the first unit of a run
	//     and again after a pause,
	//   - to get the stream's record limit, see MaxRecordBytes,
	//   - to list the shards in OrderNone and OrderShard, where it is required.
	//
	// If it is nil or lacks the rights, units that cannot be looked up are reported with
	// ErrUnresolved. Default nil.
	Reader Reader
	// Journal stores each unit from before its first attempt until it is settled. It works
	// with OrderKey, OrderShard and OrderNone. Default nil.
	Journal Journal
	// Resume holds the units of earlier runs that their Journal recorded as frozen and not as
	// settled, in the order of the Frozen calls. The producer sends them before anything newer of
	// their lanes, with the same bytes and the same identity. It looks up those first sent longer
	// ago than aggregate.H, and those of unknown age. The earlier run must have ended. Order
	// must be the order of that run, where OrderKey and OrderShard count as the same. The Journal's
	// Frozen is not called for these units again, but its Settled is. Their records go to OnResult,
	// count in Stats, and take no room in the buffer.
	Resume []FrozenUnit

	// Keys assigns explicit hash keys to records without one, for example a keytable.Session. Put
	// calls it and waits for it. Records of Resume keep their keys. So do aggregated records,
	// since readers drop one that is in another shard than the keys in it. Default nil.
	Keys Keys

	// MaxInFlight is the number of calls that may run at the same time. Default 8, from 1 to 1,000.
	MaxInFlight int
	// MaxBatchRecords is the most Kinesis records in a call. Default 500, from 1 to 500.
	MaxBatchRecords int
	// MaxBatchBytes is the most data and keys in a call. Default 5 MiB, or MaxRecordBytes if that
	// is more; in bytes, from MaxRecordBytes to 10 MiB.
	MaxBatchBytes int
	// MaxRecordBytes is the stream's limit for the data and the partition key of a record
	// (UpdateMaxRecordSize). A record that would exceed it with an identity goes as it is, alone
	// and without one; with a Journal, Put refuses it. Default: the stream's own limit, which the
	// producer reads by the Reader as soon as a record needs more than 1 MiB, or 1 MiB without a
	// Reader; in bytes, from 1 to 10 MiB.
	MaxRecordBytes int

	// MaxUnitBytes is the most data and keys in a unit in OrderKey, and in a Kinesis record in
	// OrderShard and OrderNone. A larger record has a unit of its own. Default 256 KiB, or
	// MaxRecordBytes if that is less; in bytes, from 1 to MaxRecordBytes.
	MaxUnitBytes int

	// MaxBufferedRecords is the most records that the producer holds, each from its Put to the
	// end of its callback. A call is filled with distinct keys from among these. Default 100,000;
	// from 1 to 100,000,000.
	//
	// The 16 groups of lanes share the buffer (see the package comment), so that a Put into a full
	// group delays no Put of another. One 32nd is reserved for each group, and all groups share the
	// other half. A group whose shard throttles can use a ninth of that half, or twice its share of
	// the recent deliveries if that is more. A buffer of less than 32 records has no reserves.
	MaxBufferedRecords int
	// MaxBufferedBytes is the same limit for the data and the partition keys of the records, and is
	// shared in the same way. A record larger than a reserve takes the rest from the shared half.
	// The memory in use can be more: a unit being sent is a copy of its records, so the orders with
	// units need as much again at most (OrderShard with a Journal twice as much), and some 100
	// bytes for each unit. Default 64 MiB; in bytes, from MaxRecordBytes to 1 TiB.
	MaxBufferedBytes int

	// Linger is how long a record may wait for others although a call could be made. Under load it
	// is not needed, because records collect while all calls are in flight. At a low load it
	// reduces the number of calls at the price of latency. Flush and Close do not linger. Default
	// 0; up to 1 minute.
	Linger time.Duration
	// CallTimeout is how long a call may take. After that, its records count as unknown and are
	// sent again. Default 10 s, from 10 ms to 5 minutes (the life of a signature).
	CallTimeout time.Duration
	// RetryMin and RetryMax bound the wait between two attempts of a record. The wait begins with
	// RetryMin and doubles with each failed attempt up to RetryMax, less up to a half at random.
	// During an outage (three calls in a row without an answer), the producer sends one unit at a
	// time, about once a second (or at RetryMax, if that is less). The first answer releases all
	// the others at once. Default 50 ms and 5 s; from 1 ms to 1 minute.
	RetryMin, RetryMax time.Duration
	// GiveUpAfter is the age, from Put on, at which a record without an acknowledgement is given up
	// (see the package comment). It may take up to a 32nd longer. If a call for the lane is in
	// flight, the record is given up after that call's outcome. Default 0: never.
	GiveUpAfter time.Duration

	// OnResult is called for every record that was taken, just before the record's own callback
	// and under the same rules (see PutFunc). Default nil.
	OnResult func(runnel.Record, Result)
	// OnCall is called after every call, from several goroutines at a time. It must not block.
	// Default nil.
	OnCall func(CallReport)
	// Logger gets the beginning and the end of each outage of the stream and each failure of the
	// Journal, and the first of a series of failed look-ups or listings. Default slog.Default().
	Logger *slog.Logger

	learns bool // the producer reads the stream's record limit
}

// largest returns the highest record limit that may apply, in bytes.
func (c *Config) largest() int {
	if c.learns {
		return apiMaxRecordBytes
	}
	return c.MaxRecordBytes
}

// withDefaults returns the Config with the defaults in place of its zero fields.
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

// Validate returns nil, or an error with one sentence for each field that is out of its range. Zero
// fields are valid, except Stream, Kinesis and, in OrderShard and OrderNone, Reader.
func (c Config) Validate() error {
	c = c.withDefaults()
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("producer: "+format, args...))
		}
	}
	if err := streamref.CheckName(c.Stream); err != nil {
		fault(true, "Stream is %q, %v", c.Stream, err)
	}
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

// backoff returns the back-off of calls that the core does not schedule.
func (c *Config) backoff() retry.Backoff {
	return retry.Backoff{Min: c.RetryMin, Max: c.RetryMax}
}

// limits returns the part of the Config that the core needs.
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
