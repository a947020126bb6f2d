package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
)

// shardReader reads the Kinesis records of one shard, in order, and makes a new iterator when one
// is lost. The first record after a new iterator is the last record read before.
type shardReader struct {
	*run
	shard  runnel.ShardID
	origin lease.Origin          // where to begin as long as nothing was read
	at     runnel.SequenceNumber // the last record read; "" if none
	limit  int                   // records of one read

	iterator string
	pace     pace
	failures int // in a row

	// delivers is set for a reader that delivers its records: it checks that the stream is still
	// the same one.
	delivers bool
	// guarded is set for a reader that detects missing records. The fields after it serve that.
	guarded bool
	guard
	parents []runnel.ShardID
	unsure  bool // the iterator's first records show whether any is missing
}

// answer is the result of one read of a shard.
type answer struct {
	records  []types.Record
	behind   time.Duration
	ended    bool // nothing follows, ever
	children []shardmap.Shard
	gap      bool // records after the last one read may have been removed meanwhile
	// first is the shard's first number, if there is a gap and no record was read before.
	first runnel.SequenceNumber
}

// reader reads the records at or behind after, or those from the origin on. It includes the record
// at after, since after may lie inside it.
func (r *run) reader(
	shard runnel.ShardID, origin lease.Origin, after runnel.Position, limit int,
) *shardReader {
	s := &shardReader{
		run: r, shard: shard, origin: origin, limit: limit,
		pace: pace{interval: r.cfg.PollInterval},
	}
	if after.Sequence.IsNumber() {
		s.at = after.Sequence
	}
	return s
}

// originOf returns the origin of a shard's reading as long as none of it has been processed.
func originOf(l lease.Lease) lease.Origin {
	switch {
	case !l.From.IsZero():
		return lease.Origin{Word: runnel.AtTimestamp, At: l.From}
	case l.Checkpoint.Sequence == runnel.Latest:
		// Another program made the row and left no time, so the origin is now. It is kept for the
		// case that the iterator expires before a record comes.
		return lease.Origin{Word: runnel.Latest}
	default:
		return lease.Origin{Word: runnel.TrimHorizon}
	}
}

func sequenceOf(r *types.Record) runnel.SequenceNumber {
	return runnel.SequenceNumber(aws.ToString(r.SequenceNumber))
}

// next makes one GetRecords call, and makes the iterator first if there is none. If an answer may
// leave records out, next discards it and asks again from its last record on.
func (s *shardReader) next(ctx context.Context) (answer, error) {
	if s.iterator == "" {
		if err := s.seek(ctx); err != nil {
			return answer{}, err
		}
	}
	out, err := s.get(ctx)
	if err != nil {
		return answer{}, err
	}
	if s.guarded && !s.unsure {
		if s.horizon().Shortened(s.complete, out.arrivesAt(), out.latest) {
			if err := s.sameStream(ctx); err != nil { // it asks for the period
				return answer{}, err
			}
		}
		if s.overtaken(out.latest) {
			s.iterator = ""
			return s.next(ctx) // with a new iterator it is unsure, so this happens once
		}
	}
	return s.accept(ctx, out)
}

func (s *shardReader) get(ctx context.Context) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	sent := time.Now()
	out, err := s.cfg.Kinesis.GetRecords(ctx, &kinesis.GetRecordsInput{
		ShardIterator: aws.String(s.iterator), Limit: aws.Int32(int32(s.limit)),
	})
	if err != nil {
		return reading{}, err
	}
	return newReading(out, sent, time.Now()), nil
}

func (s *shardReader) accept(ctx context.Context, out reading) (a answer, err error) {
	a = answer{behind: time.Duration(aws.ToInt64(out.MillisBehindLatest)) * time.Millisecond}
	if out.MillisBehindLatest == nil && len(out.Records) > 0 {
		a.behind = time.Millisecond // not known: more may follow
	}
	if s.guarded {
		if err := s.watch(ctx, &out, &a); err != nil {
			return answer{}, err
		}
	}
	if a.ended = out.ended(); a.ended {
		if a.children, err = shardmap.Children(out.ChildShards); err != nil {
			return answer{}, err
		}
	}
	s.failures, s.iterator = 0, aws.ToString(out.NextShardIterator)
	s.take(out.Records, &a)
	return a, nil
}

// take drops the records before the last one read, and keeps the new last one.
func (s *shardReader) take(got []types.Record, a *answer) {
	a.records = got
	for len(a.records) > 0 && sequenceOf(&a.records[0]).Compare(s.at) < 0 {
		a.records = a.records[1:]
	}
	if n := len(a.records); n > 0 {
		s.at = sequenceOf(&a.records[n-1])
	}
}

// seek makes an iterator that begins with the last record read. If that record does not come, it
// and the records after it have been trimmed.
func (s *shardReader) seek(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	in := &kinesis.GetShardIteratorInput{
		StreamName: aws.String(s.cfg.Stream), ShardId: aws.String(string(s.shard)),
	}
	switch {
	case s.at != "":
		in.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		in.StartingSequenceNumber = aws.String(string(s.at))
	case s.origin.Word == runnel.AtTimestamp:
		in.ShardIteratorType = types.ShardIteratorTypeAtTimestamp
		in.Timestamp = aws.Time(s.origin.At)
	default:
		in.ShardIteratorType = types.ShardIteratorType(s.origin.Word)
	}
	asked := time.Now()
	out, err := s.cfg.Kinesis.GetShardIterator(ctx, in)
	if err != nil {
		return err
	}
	if s.origin.Word == runnel.Latest {
		s.origin = lease.Origin{Word: runnel.AtTimestamp, At: asked}
	}
	if s.delivers {
		// The call named the stream, and an iterator belongs to the stream that had the name at
		// that time.
		if err := s.sameStream(ctx); err != nil {
			return err
		}
	}
	s.unsure = true
	s.iterator = aws.ToString(out.ShardIterator)
	return nil
}

// recover waits after a failed read, so that the next one may succeed. It returns true if the shard
// itself is gone: no more record of it will be read.
func (s *shardReader) recover(ctx context.Context, err error) (gone bool) {
	if ctx.Err() != nil {
		return false
	}
	if err = s.suspect(ctx, err); isFinal(err) {
		s.giveUp(err)
		select {
		case <-ctx.Done():
		case <-s.stopping:
		}
		return false
	}
	var expired *types.ExpiredIteratorException
	if errors.As(err, &expired) {
		// An iterator expires if the reader takes long to come back, and a new one replaces it. The
		// reader pauses before it asks a server that expires iterators again and again.
		if s.iterator = ""; s.failures > 0 {
			wait(ctx, backoff(s.failures, longestBackoff), nil)
		}
		s.failures++
		return false
	}
	if throttled(err) {
		s.failures++
		wait(ctx, max(s.pace.throttle(), backoff(s.failures, time.Second)), nil)
		return false
	}
	if notFound(err) && s.gone(ctx) {
		return true
	}
	s.failures++
	s.failed(s.shard, err)
	s.iterator = "" // the iterator may be the cause
	wait(ctx, backoff(s.failures, longestBackoff), nil)
	return false
}

// gone reports whether the stream exists and lists other shards, but no longer this one.
func (s *shardReader) gone(ctx context.Context) bool {
	shards, err := s.shards.Shards(ctx, 0)
	if err != nil || len(shards) == 0 {
		return false
	}
	for _, other := range shards {
		if other.ID == s.shard {
			return false
		}
	}
	return true
}
