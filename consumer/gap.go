package consumer

import (
	"context"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// gapBefore returns the gap before a page. If the page holds nothing but the gap, it also returns
// the page's end: a position behind f.After that no record has.
func (f *fetcher) gapBefore() (*sink.Gap, runnel.Position) {
	gap := &sink.Gap{After: f.After, Reason: "the stream has removed the record there, and may " +
		"have removed unread ones behind it"}
	if f.After == runnel.Start() {
		gap.Reason = "the stream may have removed the shard's first records unread"
	}
	switch {
	case len(f.left.Records) > 0:
		gap.Before = runnel.Position{Sequence: sequenceOf(&f.left.Records[0])}
		return gap, f.After
	case f.left.Ended:
		gap.Before = runnel.End()
		return gap, f.After
	case f.After == runnel.Start():
		gap.Before = runnel.Position{Sequence: f.left.First}
	default:
		gap.Before = runnel.Position{Sequence: f.After.Sequence, Sub: f.After.Sub + 1}
	}
	return gap, gap.Before
}

// goneGap returns the gap at the end of a shard that the stream no longer has.
func goneGap(after runnel.Position) *sink.Gap {
	return &sink.Gap{
		After: after, Before: runnel.End(),
		Reason: "the stream removed the shard before its end was read",
	}
}

// reported reports the gap before a page, by the event and a warning.
func (h *holding) reported(gap *sink.Gap) {
	cfg := h.run.cfg
	cfg.Logger.Warn("the stream removed records before they were read, by its retention period",
		"worker", cfg.WorkerID, "stream", cfg.Stream, "shard", string(h.first.Key),
		"after", gap.After.String(), "before", gap.Before.String(), "reason", gap.Reason)
	h.event(Event{Kind: EventTrimmed, Position: gap.After, Gap: gap})
}

// passGap asks Config.OnGap whether the shard may go beyond a gap.
func (h *holding) passGap(ctx context.Context, gap *sink.Gap) error {
	if h.run.cfg.OnGap == nil {
		return nil
	}
	return guarded(ctx, func(context.Context) error {
		return h.run.cfg.OnGap(h.first.Key, *gap)
	})
}
