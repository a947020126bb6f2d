package producer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/keyspace"
)

// Reader is what the producer needs of Kinesis to look up what became of units of which an
// attempt had no answer for too long; *kinesis.Client has it.
type Reader interface {
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (
		*kinesis.ListShardsOutput, error)
	GetShardIterator(context.Context, *kinesis.GetShardIteratorInput, ...func(*kinesis.Options)) (
		*kinesis.GetShardIteratorOutput, error)
	GetRecords(context.Context, *kinesis.GetRecordsInput, ...func(*kinesis.Options)) (
		*kinesis.GetRecordsOutput, error)
	DescribeStreamSummary(context.Context, *kinesis.DescribeStreamSummaryInput,
		...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error)
}

// pageEvery is the wait between two pages of a shard: it may be read five times a second by
// everybody together (AWS, "GetRecords").
const pageEvery = 250 * time.Millisecond

var errTrimmed = errors.New("the stream does not keep records for so long")

// lookUp makes a search and lands it.
func (p *Producer) lookUp(s *search) {
	results, err := p.search(p.reading, s)
	p.mu.Lock()
	core, now := p.mu.core, time.Now()
	before := core.lookups.failures
	core.landSearch(now, s, results, err)
	p.mu.Unlock()
	p.halt()
	if err != nil && before == 0 && p.reading.Err() == nil {
		p.cfg.Logger.Warn("what became of units cannot be looked up yet, and it is tried again",
			"stream", p.cfg.Stream, "units", len(s.lanes), "error", err)
	}
	signal(p.deliverNow)
	signal(p.scheduleNow)
}

// tag is what a unit is found by.
type tag struct {
	producer aggregate.ProducerID
	number   uint64
}

// search returns what became of each unit. It begins after nothing of them can be stored any
// more, so what is not there at a shard's tip never will be. An error is one that may pass.
func (p *Producer) search(ctx context.Context, s *search) ([]found, error) {
	results := make([]found, len(s.lanes))
	for i := range results {
		results[i].absent = true
	}
	err := p.markTrimmed(ctx, s, results)
	var shards []shardmap.Shard
	if err == nil {
		name, _ := p.target()
		shards, err = shardmap.List(ctx, lister{p}, aws.ToString(name), nil)
	}
	// Any shard whose range holds a unit's hash key, open or closed, may have taken it.
	for i := 0; err == nil && i < len(shards); i++ {
		wanted := map[tag]int{}
		for at, l := range s.lanes {
			if id := l.unit.id; results[at].absent && shards[i].Range.Contains(l.hashKey()) {
				wanted[tag{id.Producer, id.Number}] = at
			}
		}
		if len(wanted) > 0 {
			err = p.searchShard(ctx, s, shards[i], wanted, results)
		}
	}
	if err == nil || !isFinal(err) {
		return results, err
	}
	for i := range results {
		if results[i].absent {
			results[i] = found{err: err}
		}
	}
	return results, nil
}

// isFinal tells errors that would come again, as that the producer may not read.
func isFinal(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && final[api.ErrorCode()]
}

// leastRetention is what every stream keeps, and retentionMargin what it may trim too early.
const (
	leastRetention  = 24 * time.Hour
	retentionMargin = time.Hour
)

// markTrimmed sets an error for the units that are so old that they may have been trimmed.
func (p *Producer) markTrimmed(ctx context.Context, s *search, results []found) error {
	now := time.Now()
	if elapsed(s.from, now) < leastRetention-retentionMargin {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.CallTimeout, errCallTimeout)
	defer cancel()
	input := &kinesis.DescribeStreamSummaryInput{}
	input.StreamName, input.StreamARN = p.target()
	output, err := p.cfg.Reader.DescribeStreamSummary(ctx, input)
	if err != nil {
		return fmt.Errorf("describe stream %s: %w", p.cfg.Stream, err)
	}
	keeps := leastRetention
	if summary := output.StreamDescriptionSummary; summary != nil {
		keeps = max(keeps, time.Duration(aws.ToInt32(summary.RetentionPeriodHours))*time.Hour)
	}
	for i, l := range s.lanes {
		if elapsed(l.unit.firstSent, now) > keeps-retentionMargin {
			results[i] = found{err: errTrimmed}
		}
	}
	return nil
}

// searchShard reads a shard to its tip, or to where nothing of the units can be any more.
func (p *Producer) searchShard(
	ctx context.Context, s *search, shard shardmap.Shard, wanted map[tag]int, results []found,
) error {
	fault := func(err error) error {
		return fmt.Errorf("read shard %s of stream %s: %w", shard.ID, p.cfg.Stream, err)
	}
	iterator, err := p.iterator(ctx, s, shard.ID)
	if err != nil {
		return fault(err)
	}
	var decoder aggregate.Decoder
	for iterator != nil && len(wanted) > 0 {
		page, err := p.page(ctx, iterator)
		if err != nil {
			return fault(err)
		}
		for i := range page.Records {
			r := &page.Records[i]
			for at, sub := range unitsIn(&decoder, r.Data, shard.Range, wanted) {
				v := placed(shard.ID, runnel.SequenceNumber(aws.ToString(r.SequenceNumber)))
				v.sub = sub
				results[at] = found{verdict: v}
			}
			if aws.ToTime(r.ApproximateArrivalTimestamp).After(s.until) {
				return nil
			}
		}
		if iterator = page.NextShardIterator; aws.ToInt64(page.MillisBehindLatest) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fault(context.Cause(ctx))
		case <-time.After(pageEvery):
		}
	}
	return nil
}

// unitsIn takes the units that a Kinesis record of a shard holds out of the wanted ones, and
// yields where their results stand, with the place of their first records. A record that readers
// drop holds none.
func unitsIn(
	d *aggregate.Decoder, data []byte, shard keyspace.Range, wanted map[tag]int,
) iter.Seq2[int, int] {
	return func(yield func(at, sub int) bool) {
		if !d.Open(data) || d.Check(shard) != nil {
			return
		}
		for sub, record := range d.Records() {
			unit, ok := record.Unit()
			if !ok && sub == 0 {
				return
			}
			key := tag{unit.Producer, unit.Number}
			at, ours := wanted[key]
			if delete(wanted, key); ok && ours && !yield(at, sub) {
				return
			}
		}
	}
}

func (p *Producer) iterator(
	ctx context.Context, s *search, shard runnel.ShardID,
) (*string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.CallTimeout, errCallTimeout)
	defer cancel()
	input := &kinesis.GetShardIteratorInput{
		ShardId:           aws.String(string(shard)),
		ShardIteratorType: types.ShardIteratorTypeAtTimestamp, Timestamp: &s.from,
	}
	input.StreamName, input.StreamARN = p.target()
	output, err := p.cfg.Reader.GetShardIterator(ctx, input)
	if err != nil {
		return nil, err
	}
	return output.ShardIterator, nil
}

func (p *Producer) page(ctx context.Context, iterator *string) (*kinesis.GetRecordsOutput, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.CallTimeout, errCallTimeout)
	defer cancel()
	return p.cfg.Reader.GetRecords(ctx, &kinesis.GetRecordsInput{
		ShardIterator: iterator, StreamARN: p.arn(),
	})
}

func (p *Producer) arn() *string {
	_, arn := p.target()
	return arn
}

// lister lists the shards of the producer's stream, by its ARN where it has one: a stream of
// the same name in another account is another.
type lister struct{ p *Producer }

// ListShards is the Reader's.
func (l lister) ListShards(
	ctx context.Context, input *kinesis.ListShardsInput, options ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	if arn := l.p.arn(); arn != nil {
		named := *input
		named.StreamName, named.StreamARN = nil, arn
		input = &named
	}
	return l.p.cfg.Reader.ListShards(ctx, input, options...)
}
