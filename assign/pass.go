package assign

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
)

// passed reports whether an application has processed all that stands before a mark.
//
// Its checkpoint may stay before the mark for ever: a reader that is given nothing has nothing to
// checkpoint, as in the KCL. So when it has not changed since the last look, what follows it is
// read, and nothing but empty aggregates up to the mark is as good as passed.
//
// A row that is not there is deleted, once the shard has ended and its children have begun, or
// not made yet.
func (w *waiting) passed(
	ctx context.Context, leases map[runnel.ShardID]lease.Lease, shards []shardmap.Shard,
	shard runnel.ShardID, mark runnel.SequenceNumber,
) (bool, error) {
	l, known := leases[shard]
	if !known {
		return over(leases, shards, shard), nil
	}
	at := l.Processed()
	if !at.Less(runnel.Position{Sequence: mark}) {
		return true, nil
	}
	before, seen := w.before[shard]
	if w.before[shard] = at; !seen || before != at {
		return false, nil
	}
	return w.onlyMarks(ctx, l, mark)
}

// over reports whether an application is done with a shard of which it has no lease: it has
// processed something of a shard that came from it.
func over(
	leases map[runnel.ShardID]lease.Lease, shards []shardmap.Shard, shard runnel.ShardID,
) bool {
	for _, child := range shardmap.ChildrenOf(shards, shard) {
		l, known := leases[child.ID]
		if known && l.Processed() != runnel.Start ||
			!known && over(leases, shards, child.ID) {
			return true
		}
	}
	return false
}

// The most that is read of a shard to find that nothing but marks follows a checkpoint.
const (
	markPages   = 10
	markRecords = 1000 // of a page
)

// onlyMarks reports whether nothing but empty aggregates stands between a lease's checkpoint and
// a mark.
func (w *waiting) onlyMarks(
	ctx context.Context, l lease.Lease, mark runnel.SequenceNumber,
) (bool, error) {
	ctx, cancel := w.call(ctx)
	defer cancel()
	iterator, err := w.iterator(ctx, l)
	for range markPages {
		if err != nil || iterator == nil {
			return false, err
		}
		var out *kinesis.GetRecordsOutput
		out, err = w.move.Kinesis.GetRecords(ctx, &kinesis.GetRecordsInput{
			ShardIterator: iterator, Limit: aws.Int32(markRecords),
		})
		if err != nil {
			return false, err
		}
		for _, r := range out.Records {
			sequence := runnel.SequenceNumber(aws.ToString(r.SequenceNumber))
			if sequence.Compare(mark) >= 0 {
				return true, nil
			}
			if l.Processed().Less(lastOf(sequence, r.Data)) {
				return false, nil
			}
		}
		iterator = out.NextShardIterator
	}
	return false, nil
}

// lastOf returns the position of a Kinesis record's last user record; Start if it has none.
func lastOf(sequence runnel.SequenceNumber, data []byte) runnel.Position {
	var d aggregate.Decoder
	last := runnel.Position{Sequence: sequence}
	if d.Open(data) {
		if d.Len() == 0 {
			return runnel.Start
		}
		last.Sub = int64(d.Len()) - 1
	}
	return last
}

// iterator begins with what the lease's checkpoint stands for. Where an application that began
// with the latest record is, nobody knows as long as it has no checkpoint: the shard's beginning
// is the safe side.
func (w *waiting) iterator(ctx context.Context, l lease.Lease) (*string, error) {
	in := &kinesis.GetShardIteratorInput{
		StreamName: &w.move.Stream, ShardId: aws.String(string(l.Key)),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	switch at := l.Processed(); {
	case at != runnel.Start:
		in.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		in.StartingSequenceNumber = aws.String(string(at.Sequence))
	case !l.From.IsZero():
		in.ShardIteratorType = types.ShardIteratorTypeAtTimestamp
		in.Timestamp = aws.Time(l.From)
	}
	out, err := w.move.Kinesis.GetShardIterator(ctx, in)
	if err != nil {
		return nil, err
	}
	return out.ShardIterator, nil
}
