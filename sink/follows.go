package sink

import (
	"fmt"

	"github.com/runnel-stream/runnel"
)

// Follows returns nil if the batch is one of the shard and follows the position through, which the
// batches before it have reached. Otherwise the error is ErrOutOfOrder or
// runnel.ErrPositionSyntax. Writers call it before they take a batch.
func (b *Batch) Follows(shard runnel.ShardID, through runnel.Position) error {
	if err := b.followsGap(through); err != nil {
		return err
	}
	previous := through
	for i := range b.Records {
		record := &b.Records[i]
		switch {
		case !record.Position.IsRecord():
			return fmt.Errorf("%w: %q", runnel.ErrPositionSyntax, record.Position.String())
		case record.ShardID != shard:
			return fmt.Errorf("%w: a record of shard %q", ErrOutOfOrder, record.ShardID)
		case !previous.Less(record.Position):
			return fmt.Errorf("%w: %s after %s", ErrOutOfOrder, record.Position, previous)
		}
		previous = record.Position
	}
	switch {
	case b.Through.Less(previous):
		return fmt.Errorf("%w: through %s, but at %s before", ErrOutOfOrder, b.Through, previous)
	case through.Less(b.Through) && !b.Through.IsRecord():
		return fmt.Errorf("%w: through %q", runnel.ErrPositionSyntax, b.Through.String())
	}
	return nil
}

// followsGap reports whether the batch's gap begins where the batches before it ended, and ends
// before the batch's records.
func (b *Batch) followsGap(through runnel.Position) error {
	gap := b.Gap
	if gap == nil {
		return nil
	}
	fits := gap.After == through && gap.After.Less(gap.Before)
	switch {
	case gap.Before == runnel.End():
		fits = fits && b.Through == through
	case !gap.Before.IsRecord() || b.Through.Less(gap.Before):
		fits = false
	case len(b.Records) > 0:
		fits = fits && !b.Records[0].Position.Less(gap.Before)
	}
	if !fits {
		return fmt.Errorf("%w: a gap between %s and %s in a batch from %s to %s", ErrOutOfOrder,
			gap.After, gap.Before, through, b.Through)
	}
	return nil
}
