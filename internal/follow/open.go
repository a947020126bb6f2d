package follow

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
)

// handle passes a page's records to Config.Handle.
func (r *reader) handle(ctx context.Context, got []types.Record) error {
	if len(got) == 0 {
		return nil
	}
	r.run.handling.Lock()
	defer r.run.handling.Unlock()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := r.run.cfg.Handle(ctx, r.records(got)); err != nil {
		return &handlerError{err}
	}
	return nil
}

// records yields the records that were not read before, with aggregates opened and doubles dropped.
func (r *reader) records(got []types.Record) iter.Seq[*runnel.Record] {
	return func(yield func(*runnel.Record) bool) {
		for i := range got {
			record := runnel.Record{
				PartitionKey: aws.ToString(got[i].PartitionKey),
				Data:         got[i].Data,
				ShardID:      r.shard.ID,
				Position: runnel.Position{
					Sequence: runnel.SequenceNumber(aws.ToString(got[i].SequenceNumber)),
				},
				ArrivalTime: aws.ToTime(got[i].ApproximateArrivalTimestamp),
			}
			if r.after != "" && record.Position.Sequence.Compare(r.after) <= 0 {
				continue // read before
			}
			r.after = record.Position.Sequence
			if !r.open(&record, yield) {
				return
			}
		}
	}
}

// open yields the record, or the user records that it holds.
func (r *reader) open(record *runnel.Record, yield func(*runnel.Record) bool) bool {
	if !r.decoder.Open(record.Data) {
		r.filter.Advance(record.ArrivalTime)
		return yield(record)
	}
	if err := r.decoder.Check(r.shard.Range); err != nil {
		r.run.cfg.Notice(Notice{
			Kind: Void, Shard: r.shard.ID, After: record.Position.Sequence, Err: err,
		})
		return true
	}
	users := r.filter.Pass(&r.decoder, record.ArrivalTime)
	if r.run.cfg.Doubles {
		users = r.decoder.Records()
	}
	for sub, user := range users {
		opened := *record
		opened.PartitionKey, opened.ExplicitHashKey = user.PartitionKey, user.ExplicitHashKey
		opened.Data, opened.Position.Sub = user.Data, int64(sub)
		if !yield(&opened) {
			return false
		}
	}
	return true
}
