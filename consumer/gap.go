package consumer

import (
	"context"
	"sync"

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

// gaps are the places of the shards' last gaps that were reported. A shard that may not pass a gap
// comes to it again and again, perhaps for days. It is safe for concurrent use.
type gaps struct {
	mu     sync.Mutex
	places map[runnel.ShardID]runnel.Position
}

// isNew notes the place of a gap, and reports whether the last one was elsewhere.
func (g *gaps) isNew(shard runnel.ShardID, after runnel.Position) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	last, known := g.places[shard]
	if known && last == after {
		return false
	}
	if g.places == nil {
		g.places = map[runnel.ShardID]runnel.Position{}
	}
	g.places[shard] = after
	return true
}

// forget forgets a shard, which has passed its gap or is read from another place.
func (g *gaps) forget(shard runnel.ShardID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.places, shard)
}

// reported reports the gap before a page.
func (h *holding) reported(gap *sink.Gap) {
	h.run.reportGap(h.first.Key, gap,
		"the stream removed records before they were read, by its retention period")
}

// reportGap reports a gap by the event and a warning, once for each place.
func (r *run) reportGap(shard runnel.ShardID, gap *sink.Gap, text string) {
	if !r.gaps.isNew(shard, gap.After) {
		return
	}
	r.cfg.Logger.Warn(text, "worker", r.cfg.WorkerID, "stream", r.cfg.Stream, "shard",
		string(shard), "after", gap.After.String(), "before", gap.Before.String(), "reason",
		gap.Reason)
	r.observe(Event{Kind: EventTrimmed, ShardID: shard, Position: gap.After, Gap: gap})
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
