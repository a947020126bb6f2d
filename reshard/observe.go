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
	"github.com/runnel-stream/runnel/internal/awscbor"
	"github.com/runnel-stream/runnel/internal/pages"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/keyspace"
)

// Reader is the part of the Kinesis API that Observe uses. *kinesis.Client implements it.
type Reader interface {
	Lister
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput,
		...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
	GetShardIterator(context.Context, *kinesis.GetShardIteratorInput,
		...func(*kinesis.Options)) (*kinesis.GetShardIteratorOutput, error)
	GetRecords(context.Context, *kinesis.GetRecordsInput, ...func(*kinesis.Options)) (
		*kinesis.GetRecordsOutput, error)
}

// Window is the time to observe. With the zero value each shard is read for 30 s from now on.
type Window struct {
	// For is the time that each shard is read, from now on. Default 30 s.
	For time.Duration
	// Last reads the past instead: all records that arrived in this time up to now, also from
	// shards that were closed since. Default 0: from now on.
	Last time.Duration
	// Parallel is the number of shards that are read at the same time, each with up to 10 MiB in
	// memory. Further shards are read afterwards, each for the whole time. Default 32.
	Parallel int
}

// Seen is one user record with its share of the size of its Kinesis record.
type Seen struct {
	Shard runnel.ShardID // the shard that it was read from
	Hash  keyspace.Key   // its hash key
	Key   string         // its partition key
	Bytes int            // its share of the Kinesis record's data and partition key
	Of    int            // the number of user records in the Kinesis record, 1 or more
	// Placed is false if the hash of the partition key is not in the shard's range. Then the
	// record was put with an explicit hash key, which readers do not get. Hash is a guess in
	// the shard's range, always the same for the same partition key.
	Placed bool
}

// Observed is the result of Observe: the totals.
type Observed struct {
	// Took is the length of the observed time for each shard: Window.For; or Window.Last, but at
	// most the age of the stream and its retention period.
	Took    time.Duration
	Shards  int
	Records uint64 // Kinesis records
	Bytes   uint64 // of their data and partition keys, as AWS counts a shard's load
	Guessed uint64 // the part of Bytes that belongs to records that were not Placed
}

// ErrResharded is returned if a shard ended while it was observed.
var ErrResharded = errors.New("the stream was resharded meanwhile: observe it again")

const (
	readEvery = time.Second            // after a read that reached the tip
	readSoon  = 250 * time.Millisecond // otherwise; AWS allows five reads a second
)

// Observe reads a stream without leases or checkpoints and calls take with each user record. It
// opens aggregates. It keeps duplicates, since they are load too. Only one goroutine at a time
// calls take, in the order of each shard. Observe reads a shard at most four times a second; AWS
// counts these reads together with the reads of consumers. Throttling and outages are retried for
// about a minute for each call.
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
	o := &observing{
		client: client, reads: awscbor.New(client), stream: stream, window: window, take: take,
	}
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

// since sets seen.Took to the length of the past that can be read.
func (o *observing) since(ctx context.Context) error {
	return persist(ctx, func(ctx context.Context) error {
		out, err := o.client.DescribeStreamSummary(ctx, streamref.Describe(o.stream))
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

// observing is the state of one call of Observe.
type observing struct {
	client Reader
	reads  *awscbor.Client // by client
	stream string
	window Window
	until  time.Time // the end of the observed time; only with Window.Last

	mu   sync.Mutex
	take func(Seen)
	seen Observed
}

// run reads the shards, up to Parallel at a time, and stops all reads at the first error.
func (o *observing) run(ctx context.Context, shards []runnel.Shard) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	turn := make(chan runnel.Shard)
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

// cursor begins at the window's beginning. Its pace leaves most of the five reads a second that AWS
// allows to consumers, at the tip above all.
func (o *observing) cursor(shard runnel.Shard) *pages.Cursor {
	from := runnel.FromLatest()
	if !o.until.IsZero() {
		from = runnel.FromTime(o.until.Add(-o.window.Last))
	}
	return pages.New(pages.Config{
		Kinesis: o.reads, Stream: o.stream, Shard: shard.ID, From: from, CallTimeout: callTimeout,
		Pace:     pages.Pace{Least: readSoon, Tip: readEvery, Idle: readEvery},
		Attempts: attempts, Backoff: backoff,
	})
}

// read reads one shard for the time of the window.
func (o *observing) read(ctx context.Context, shard runnel.Shard) error {
	cursor := o.cursor(shard)
	var decoder aggregate.Decoder
	var deadline time.Time
	for {
		page, err := cursor.Next(ctx)
		if err != nil {
			return err
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(o.window.For)
		}
		late := o.page(&decoder, shard, page.Records)
		switch {
		case o.until.IsZero() && page.Ended:
			return ErrResharded
		case page.Ended, late, !o.until.IsZero() && page.Behind == 0:
			return nil
		case o.until.IsZero() && !time.Now().Before(deadline):
			return nil
		}
		if o.until.IsZero() && page.Behind == 0 {
			cursor.DueBy(deadline)
		}
	}
}

// page takes the records of one read. late is true if some of them arrived after the window.
func (o *observing) page(
	decoder *aggregate.Decoder, shard runnel.Shard, records []types.Record,
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
	decoder *aggregate.Decoder, shard runnel.Shard, key string, data []byte,
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

func (o *observing) user(shard runnel.Shard, s Seen) {
	s.Shard = shard.ID
	if s.Placed = shard.Range.Contains(s.Hash); !s.Placed {
		s.Hash = shard.Range.Spread(keyspace.Of(s.Key))
		o.seen.Guessed += uint64(s.Bytes)
	}
	o.take(s)
}
