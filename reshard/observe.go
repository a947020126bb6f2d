package reshard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/keyspace"
)

// Reader is what Observe needs of Kinesis; *kinesis.Client has it.
type Reader interface {
	Lister
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput,
		...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
	GetShardIterator(context.Context, *kinesis.GetShardIteratorInput,
		...func(*kinesis.Options)) (*kinesis.GetShardIteratorOutput, error)
	GetRecords(context.Context, *kinesis.GetRecordsInput, ...func(*kinesis.Options)) (
		*kinesis.GetRecordsOutput, error)
}

// Window says when to look. The zero value looks at each shard for 30 s from now on.
type Window struct {
	// For is how long each shard is read, from now on. Default 30 s.
	For time.Duration
	// Last is how far back to read instead, up to now, the shards that were closed since
	// included. It reads everything that arrived. Default 0: from now on.
	Last time.Duration
	// Parallel is how many shards are read at the same time, each with up to 10 MiB in
	// memory. More shards than that are read in turn, each for the whole time. Default 32.
	Parallel int
}

// Seen is a user record, and its part of the Kinesis record that it came in.
type Seen struct {
	Shard runnel.ShardID
	Hash  keyspace.Key // where in the key space it falls
	Key   string       // its partition key
	Bytes int          // its part of the Kinesis record's data and partition key
	Of    int          // how many user records share the Kinesis record, 1 or more
	// Placed is false where the hash of the partition key is not in the shard: it was put with
	// an explicit hash key, which readers are not told. Hash is then a guess in the shard's
	// range, the same for the same key.
	Placed bool
}

// Observed is how much was seen.
type Observed struct {
	// Took is the time that what was seen arrived in, of each shard: Window.For; or
	// Window.Last, but no longer than the stream has been there and keeps its records.
	Took    time.Duration
	Shards  int
	Records uint64 // Kinesis records
	Bytes   uint64 // of their data and partition keys, as AWS counts a shard's load
	Guessed uint64 // of these, those of records that were not Placed
}

// ErrResharded is returned when a shard ended while it was observed.
var ErrResharded = errors.New("the stream was resharded meanwhile: observe it again")

const (
	readEvery = time.Second            // of a shard that is read up to date
	readSoon  = 250 * time.Millisecond // of one that is not; AWS allows five reads a second
)

// Observe reads a stream without leases or checkpoints and calls take with each user record that
// it sees, aggregates opened; doubles too, since they are load. take is called by one goroutine
// at a time, in each shard's order. It reads a shard at most four times a second, which AWS
// counts together with the reads of consumers. Throttling and outages are retried for about a
// minute of a call.
func Observe(
	ctx context.Context, client Reader, stream string, window Window, take func(Seen),
) (Observed, error) {
	if window.For < 0 || window.Last < 0 || window.Parallel < 0 {
		return Observed{}, errors.New("observe: For, Last and Parallel cannot be below 0")
	}
	if window.For == 0 {
		window.For = 30 * time.Second
	}
	if window.Parallel == 0 {
		window.Parallel = 32
	}
	o := &observing{client: client, stream: stream, window: window, take: take}
	filter := &types.ShardFilter{Type: types.ShardFilterTypeAtLatest}
	o.seen.Took = window.For
	if window.Last > 0 {
		o.until = time.Now()
		if err := o.since(ctx); err != nil {
			return Observed{}, fmt.Errorf("observe stream %s: %w", stream, err)
		}
		filter = &types.ShardFilter{
			Type:      types.ShardFilterTypeFromTimestamp,
			Timestamp: aws.Time(o.until.Add(-window.Last)),
		}
	}
	shards, err := shardmap.List(ctx, client, stream, filter)
	if err != nil {
		return Observed{}, err
	}
	err = o.run(ctx, shards)
	o.seen.Shards = len(shards)
	return o.seen, err
}

// since says how far back there is something to read.
func (o *observing) since(ctx context.Context) error {
	return persist(ctx, func(ctx context.Context) error {
		out, err := o.client.DescribeStreamSummary(ctx,
			&kinesis.DescribeStreamSummaryInput{StreamName: aws.String(o.stream)})
		if err != nil {
			return err
		}
		o.seen.Took = o.window.Last
		summary := out.StreamDescriptionSummary
		if created := aws.ToTime(summary.StreamCreationTimestamp); !created.IsZero() {
			o.seen.Took = min(o.seen.Took, max(time.Second, o.until.Sub(created)))
		}
		if hours := aws.ToInt32(summary.RetentionPeriodHours); hours > 0 {
			o.seen.Took = min(o.seen.Took, time.Duration(hours)*time.Hour)
		}
		return nil
	})
}

// observing is one Observe.
type observing struct {
	client Reader
	stream string
	window Window
	until  time.Time // with Window.Last

	mu   sync.Mutex
	take func(Seen)
	seen Observed
}

// run reads the shards, some at a time, and ends all of it at the first error.
func (o *observing) run(ctx context.Context, shards []shardmap.Shard) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	turn := make(chan shardmap.Shard)
	var readers sync.WaitGroup
	for range min(o.window.Parallel, len(shards)) {
		readers.Go(func() {
			for shard := range turn {
				if err := o.read(ctx, shard); err != nil && ctx.Err() == nil {
					cancel(fmt.Errorf("observe stream %s, shard %s: %w", o.stream, shard.ID, err))
				}
			}
		})
	}
	for _, shard := range shards {
		select {
		case turn <- shard:
		case <-ctx.Done():
		}
	}
	close(turn)
	readers.Wait()
	return context.Cause(ctx)
}

// read reads one shard for as long as the window says.
func (o *observing) read(ctx context.Context, shard shardmap.Shard) error {
	in := &kinesis.GetShardIteratorInput{
		StreamName: aws.String(o.stream), ShardId: aws.String(string(shard.ID)),
		ShardIteratorType: types.ShardIteratorTypeLatest,
	}
	if !o.until.IsZero() {
		in.ShardIteratorType = types.ShardIteratorTypeAtTimestamp
		in.Timestamp = aws.Time(o.until.Add(-o.window.Last))
	}
	var iterator *string
	err := persist(ctx, func(ctx context.Context) error {
		out, err := o.client.GetShardIterator(ctx, in)
		if err == nil {
			iterator = out.ShardIterator
		}
		return err
	})
	if err != nil {
		return err
	}
	deadline := time.Now().Add(o.window.For)
	var decoder aggregate.Decoder
	for {
		var out *kinesis.GetRecordsOutput
		err := persist(ctx, func(ctx context.Context) (err error) {
			out, err = o.client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: iterator})
			return err
		})
		if err != nil {
			return err
		}
		late := o.page(&decoder, shard, out.Records)
		behind := aws.ToInt64(out.MillisBehindLatest)
		iterator = out.NextShardIterator
		switch {
		case o.until.IsZero() && iterator == nil:
			return ErrResharded
		case iterator == nil, late, !o.until.IsZero() && behind == 0:
			return nil
		case o.until.IsZero() && !time.Now().Before(deadline):
			return nil
		}
		wait := readSoon
		if behind == 0 {
			wait = min(readEvery, max(0, time.Until(deadline)))
		}
		if err := retry.Wait(ctx, wait); err != nil {
			return err
		}
	}
}

// page takes what one read brought, and reports whether the window was over before its end.
func (o *observing) page(
	decoder *aggregate.Decoder, shard shardmap.Shard, records []types.Record,
) (late bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range records {
		if !o.until.IsZero() && aws.ToTime(r.ApproximateArrivalTimestamp).After(o.until) {
			return true
		}
		o.record(decoder, shard, aws.ToString(r.PartitionKey), r.Data)
	}
	return false
}

func (o *observing) record(
	decoder *aggregate.Decoder, shard shardmap.Shard, key string, data []byte,
) {
	whole := len(key) + len(data)
	o.seen.Records++
	o.seen.Bytes += uint64(whole)
	if !decoder.Open(data) || decoder.Len() == 0 {
		o.user(shard, Seen{Hash: keyspace.Of(key), Key: key, Bytes: whole, Of: 1})
		return
	}
	inner := 0
	for _, r := range decoder.Records() {
		inner += len(r.PartitionKey) + len(r.Data)
	}
	sum, told := 0, 0
	for _, r := range decoder.Records() {
		sum += len(r.PartitionKey) + len(r.Data)
		part := int(int64(whole)*int64(sum)/int64(max(1, inner))) - told
		told += part
		o.user(shard, Seen{Hash: r.Hash(), Key: r.PartitionKey, Bytes: part, Of: decoder.Len()})
	}
}

func (o *observing) user(shard shardmap.Shard, s Seen) {
	s.Shard = shard.ID
	if s.Placed = shard.Range.Contains(s.Hash); !s.Placed {
		s.Hash = shard.Range.Spread(keyspace.Of(s.Key))
		o.seen.Guessed += uint64(s.Bytes)
	}
	o.take(s)
}
