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
	return r.run.cfg.Handle(ctx, r.records(got))
}

// records yields a page's records, with aggregates opened and doubles dropped.
func (r *reader) records(got []types.Record) iter.Seq[*runnel.Record] {
	return func(yield func(*runnel.Record) bool) {
		to := &yielding{yield: yield}
		for i := range got {
			opened := r.opener.Open(&got[i], to)
			if opened.Outside != nil {
				r.run.cfg.OnNotice(Notice{
					Kind: Void, Shard: r.shard.ID, Err: opened.Outside,
					After: runnel.SequenceNumber(aws.ToString(got[i].SequenceNumber)),
				})
			}
			if to.enough {
				return
			}
		}
	}
}

// yielding passes user records to an iteration.
type yielding struct {
	yield  func(*runnel.Record) bool
	enough bool // the iteration has ended
}

// Expect does nothing: no record is held.
func (*yielding) Expect(int) {}

// Take yields a record.
func (y *yielding) Take(record runnel.Record) bool {
	y.enough = !y.yield(&record)
	return !y.enough
}
