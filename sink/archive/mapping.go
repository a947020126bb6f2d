package archive

import (
	"context"
	"fmt"

	"github.com/runnel-stream/runnel"
)

// mapped returns a batch's records as Config.Map leaves them.
func (w *writer) mapped(
	ctx context.Context, records []runnel.Record,
) (kept []runnel.Record, err error) {
	if w.cfg.Map == nil {
		return records, nil
	}
	each := func(error) bool { return true }
	err = w.repeat(ctx, w.chain.folder(), each, func() error {
		kept = make([]runnel.Record, 0, len(records))
		for i := range records {
			record := records[i]
			keep, err := w.cfg.Map(ctx, &record)
			if err != nil {
				return fmt.Errorf("map the record at %s: %w", records[i].Position, err)
			}
			record.ShardID, record.Position = records[i].ShardID, records[i].Position
			record.ArrivalTime = records[i].ArrivalTime
			if keep {
				kept = append(kept, record)
			}
		}
		return nil
	})
	return kept, err
}
