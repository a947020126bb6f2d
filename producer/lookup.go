package producer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go/middleware"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/pages"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/keyspace"
)

// Reader is the part of the Kinesis API that reads; *kinesis.Client implements it. Config.Reader
// lists its uses. The producer calls it from several goroutines at a time.
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

// pageEvery is the time between two reads of a shard. AWS allows five reads a second, for all
// applications together ("GetRecords").
const pageEvery = 250 * time.Millisecond

// patience: a search that waits for one part in patience of H logs a message.
const patience = 5

var errTrimmed = errors.New("the stream does not keep records for so long")

// lookUp runs a search and passes its results to the core.
func (p *Producer) lookUp(s *search) {
	results, err := p.search(p.reading, s)
	p.mu.Lock()
	core, now := p.mu.core, p.clock.now()
	before := core.lookups.failures
	core.landSearch(now, s, results, err)
	p.mu.Unlock()
	p.halt()
	if err != nil && before == 0 && p.reading.Err() == nil {
		p.cfg.Logger.Warn("units of unknown outcome cannot be looked up yet; trying again",
			"stream", p.cfg.Stream, "units", len(s.lanes), "error", err)
	}
	signal(p.deliverNow)
	signal(p.scheduleNow)
}

// tag identifies a unit.
type tag struct {
	producer aggregate.ProducerID
	number   uint64
}

// search finds each unit, or finds that it is absent. It begins when no copy can be stored any
// more, so an absent unit stays absent: see horizon.go. After an error the search can be repeated.
func (p *Producer) search(ctx context.Context, s *search) ([]found, error) {
	results := make([]found, len(s.lanes))
	for i := range results {
		results[i].absent = true
	}
	var date time.Time
	shards, err := shardmap.List(ctx, lister{p, &date}, p.cfg.Stream, nil)
	if err == nil {
		s.until = p.mu.core.limits.behind(date)
		err = p.markTrimmed(ctx, s, date, results)
	}
	// A unit may be in any shard with its hash key in the range, open or closed.
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
	if err = p.lasting(ctx, p.cfg.Reader, err); err == nil || !isFinal(err) {
		return results, err
	}
	for i := range results {
		if results[i].absent {
			results[i] = found{err: err}
		}
	}
	return results, nil
}

// leastRetention is the shortest retention period of a stream. A stream may trim records up to
// retentionMargin earlier.
const (
	leastRetention  = 24 * time.Hour
	retentionMargin = time.Hour
)

// markTrimmed sets an error for the units that are so old that the stream may have trimmed them.
// today is the stream's time; if it is zero, the producer's clock is used.
func (p *Producer) markTrimmed(
	ctx context.Context, s *search, today time.Time, results []found,
) error {
	const safe = leastRetention - retentionMargin
	if today.IsZero() {
		today = p.clock.now()
	}
	old := func(l *lane, keeps time.Duration) bool {
		return !l.unit.from.IsZero() && today.Sub(l.unit.from) > keeps
	}
	if !slices.ContainsFunc(s.lanes, func(l *lane) bool { return old(l, safe) }) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.CallTimeout, errCallTimeout)
	defer cancel()
	input := streamref.Describe(p.cfg.Stream)
	output, err := p.cfg.Reader.DescribeStreamSummary(ctx, input)
	if err != nil {
		return fmt.Errorf("describe stream %s: %w", p.cfg.Stream, err)
	}
	keeps := leastRetention
	if summary := output.StreamDescriptionSummary; summary != nil {
		keeps = max(keeps, time.Duration(aws.ToInt32(summary.RetentionPeriodHours))*time.Hour)
	}
	for i, l := range s.lanes {
		if old(l, keeps-retentionMargin) {
			results[i] = found{err: errTrimmed}
		}
	}
	return nil
}

// searchShard reads a shard to its tip, or until no copy of a wanted unit can follow.
func (p *Producer) searchShard(
	ctx context.Context, s *search, shard runnel.Shard, wanted map[tag]int, results []found,
) error {
	fault := func(err error) error {
		return fmt.Errorf("read shard %s of stream %s: %w", shard.ID, p.cfg.Stream, err)
	}
	cursor, page, err := p.searchFrom(ctx, s, shard.ID, wanted)
	var decoder aggregate.Decoder
	for moved := p.clock.now(); ; page, err = cursor.Next(ctx) {
		if err != nil {
			return fault(err)
		}
		for i := range page.Records {
			r := &page.Records[i]
			if !s.until.IsZero() && aws.ToTime(r.ApproximateArrivalTimestamp).After(s.until) {
				return nil
			}
			for at, sub := range unitsIn(&decoder, r.Data, shard.Range, wanted) {
				v := placed(shard.ID, runnel.SequenceNumber(aws.ToString(r.SequenceNumber)))
				v.sub = sub
				results[at] = found{verdict: v}
			}
		}
		if page.Ended || page.Behind == 0 || len(wanted) == 0 {
			return nil
		}
		if len(page.Records) > 0 {
			moved = p.clock.now()
		} else {
			p.logWaiting(s, shard.ID, p.clock.now().Sub(moved))
		}
	}
}

// logWaiting logs, once for each search, that a shard has records that cannot be read yet, for
// example because a server's disk hangs. The search waits for them without a limit.
func (p *Producer) logWaiting(s *search, shard runnel.ShardID, by time.Duration) {
	if s.waits || by < seam.H()/patience {
		return
	}
	s.waits = true
	p.cfg.Logger.Warn("units of unknown outcome cannot be looked up yet: the shard has records "+
		"that cannot be read so far", "stream", p.cfg.Stream, "shard", shard, "units", len(s.lanes))
}

// unitsIn yields the wanted units that a Kinesis record of a shard holds, and removes them from
// wanted. It yields the index of a unit's result, and the index of its first record. A Kinesis
// record that readers drop holds no unit.
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

// searchFrom returns a cursor at the place where the search for the wanted units begins, and its
// first page.
func (p *Producer) searchFrom(
	ctx context.Context, s *search, shard runnel.ShardID, wanted map[tag]int,
) (*pages.Cursor, pages.Page, error) {
	var lanes []*lane
	for _, at := range wanted {
		lanes = append(lanes, s.lanes[at])
	}
	p.mu.Lock()
	begin := p.mu.core.startOf(shard, lanes)
	p.mu.Unlock()
	from := runnel.FromOldest()
	if !begin.at.IsZero() {
		from = runnel.FromTime(begin.at)
	}
	if begin.after != "" {
		cursor := p.cursor(shard, runnel.FromSequence(begin.after))
		page, err := cursor.Next(ctx)
		if !awserr.InvalidArgument(err) {
			return cursor, page, err
		}
		// The number is not one of this stream: it was deleted and created again under its name.
	}
	cursor := p.cursor(shard, from)
	page, err := cursor.Next(ctx)
	return cursor, page, err
}

// cursor returns a cursor that makes one attempt for each page, since the core decides when to
// search again.
func (p *Producer) cursor(shard runnel.ShardID, from runnel.From) *pages.Cursor {
	cfg := pages.Config{
		Kinesis: p.reads, Shard: shard, From: from, CallTimeout: p.cfg.CallTimeout,
		Pace: pages.Pace{Least: pageEvery, Idle: pageEvery}, Attempts: 1,
	}
	cfg.Stream = p.cfg.Stream
	return pages.New(cfg)
}

// lister lists the shards of the producer's stream.
type lister struct {
	p    *Producer
	date *time.Time // if not nil, receives the Date of the last answer
}

// ListShards calls the Reader's ListShards.
func (l lister) ListShards(
	ctx context.Context, input *kinesis.ListShardsInput, options ...func(*kinesis.Options),
) (*kinesis.ListShardsOutput, error) {
	sent := l.p.clock.now()
	output, err := l.p.cfg.Reader.ListShards(ctx, input, options...)
	var metadata middleware.Metadata
	if err == nil {
		metadata = output.ResultMetadata
	}
	l.p.see(sent, metadata, err)
	if l.date != nil {
		*l.date = dateOf(metadata, err)
	}
	return output, err
}
