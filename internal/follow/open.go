package follow

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/opener"
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
		return err
	}
	return r.void
}

// ErrVoid is returned for a void aggregate with opener.VoidStop.
var ErrVoid = errors.New("reading stops at an aggregate that was packed for another shard")

// records yields a page's records, with aggregates opened and doubles dropped.
func (r *reader) records(got []types.Record) iter.Seq[*runnel.Record] {
	return func(yield func(*runnel.Record) bool) {
		to := &yielding{yield: yield}
		for i := range got {
			opened := r.opener.Open(&got[i], to)
			if opened.Outside != nil {
				n := Notice{
					Kind: Void, Shard: r.shard.ID, Err: opened.Outside, After: opened.Last.Sequence,
					Delivered: opened.Delivered, Dropped: opened.Dropped,
				}
				if r.opener.Void == opener.VoidStop {
					r.void = fmt.Errorf("%w: record %s of %s: %w", ErrVoid, n.After, n.Shard, n.Err)
					return
				}
				r.run.cfg.OnNotice(n)
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
