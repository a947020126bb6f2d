package keytable

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/pages"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
)

// passed reports whether an application has processed all records before a mark.
//
// Its checkpoint may stay before the mark for ever: as in the KCL, a reader without records has
// nothing to checkpoint. So if the checkpoint is the same at two looks, passed reads the records
// that follow it. If only empty aggregates follow up to the mark, the application has passed it.
//
// A missing row means that the application has finished the shard and deleted its lease, or has not
// created it yet; see over.
func (w *waiting) passed(
	ctx context.Context, leases map[runnel.ShardID]lease.Lease, shards []runnel.Shard,
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

// over reports whether an application has finished a shard of which it has no lease: it has
// processed a record of a descendant.
func over(
	leases map[runnel.ShardID]lease.Lease, shards []runnel.Shard, shard runnel.ShardID,
) bool {
	for _, child := range shardmap.ChildrenOf(shards, shard) {
		l, known := leases[child.ID]
		if known && l.Processed() != runnel.Start() ||
			!known && over(leases, shards, child.ID) {
			return true
		}
	}
	return false
}

// The limits of reading a shard in search of records that are not marks.
const (
	markPages   = 10
	markRecords = 1000 // of a page
)

// onlyMarks reports whether only empty aggregates lie between the checkpoint of a lease and a mark.
func (w *waiting) onlyMarks(
	ctx context.Context, l lease.Lease, mark runnel.SequenceNumber,
) (bool, error) {
	ctx, cancel := w.table.call(ctx)
	defer cancel()
	cursor := pages.New(pages.Config{
		Kinesis: w.reads, Stream: w.move.Stream, Shard: l.Key, From: checkpoint(l),
		Limit: markRecords, Attempts: 1, // the next look is the next attempt
	})
	for range markPages {
		page, err := cursor.Next(ctx)
		if err != nil {
			return false, err
		}
		for _, r := range page.Records {
			sequence := runnel.SequenceNumber(aws.ToString(r.SequenceNumber))
			if sequence.Compare(mark) >= 0 {
				return true, nil
			}
			if l.Processed().Less(lastOf(sequence, r.Data)) {
				return false, nil
			}
		}
		if page.Ended {
			return false, nil
		}
	}
	return false, nil
}

// lastOf returns the position of a Kinesis record's last user record; Start if it has none.
func lastOf(sequence runnel.SequenceNumber, data []byte) runnel.Position {
	var d aggregate.Decoder
	last := runnel.Position{Sequence: sequence}
	if d.Open(data) {
		if d.Len() == 0 {
			return runnel.Start()
		}
		last.Sub = int64(d.Len()) - 1
	}
	return last
}

// checkpoint returns the place of a lease's checkpoint. An application that started at LATEST has
// an unknown position until its first checkpoint; the beginning of the shard is then the safe
// choice.
func checkpoint(l lease.Lease) runnel.From {
	switch at := l.Processed(); {
	case at != runnel.Start():
		return runnel.FromSequence(at.Sequence)
	case !l.From.IsZero():
		return runnel.FromTime(l.From)
	default:
		return runnel.FromOldest()
	}
}
