package consumer

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/pages"
	"github.com/runnel-stream/runnel/keyspace"
)

// rebuild makes the filter for a position of the shard. It reads the records that can still have
// doubles behind the position again, without delivering them.
//
// Copies of a unit lie at most 3H apart, so if the server's clock runs evenly their stamps do, too.
// A forward step of that clock moves the stamps apart, by any amount. A window of a fixed length
// would then begin behind a unit with a retry that is still to come. The filter's own clock counts
// such a step as at most H/5. So a record that lies more than 4H of that clock before the position
// is older than 3H even with five steps in between. But the clock is known only by reading. So the
// window begins 4H of stamps before the position. The filter may count less than 4H of its clock in
// the window, because of a step or in a shard with few records. Then the window is doubled and read
// anew, until the filter counts 4H or the window begins before the oldest record that the stream
// still has. A shard with a record in every H/5 is read once. For the others all windows together
// have at most twice the last one's records, and those are few.
//
// The window goes on into the ends of all ancestors that it reaches. They come from the stream's
// list, because lease rows are cleaned up. A shard that was trimmed counts as empty.
//
// It ends early, with an error, when the worker is to stop.
func (h *holding) rebuild(ctx context.Context, at runnel.Position) (*aggregate.Filter, error) {
	b := h.newRebuilder(at)
	return b.build(ctx, b.run)
}

// bringUp makes the filter for a position from the state in the row, which is of an earlier one: a
// program that keeps no state has moved the checkpoint on. It reads the records in between, without
// delivering them.
func (h *holding) bringUp(ctx context.Context, at runnel.Position) (*aggregate.Filter, error) {
	b := h.newRebuilder(at)
	if b.filter = h.readable(h.state); b.filter == nil {
		return h.rebuild(ctx, at)
	}
	return b.build(ctx, func(ctx context.Context) error {
		if old, err := b.outdated(ctx, h.stateAt); old || err != nil {
			if err != nil {
				return err
			}
			return b.run(ctx)
		}
		keys, err := h.hashRange(ctx)
		if err != nil {
			return err
		}
		since := h.stateAt
		from := h.run.pages(h.first.Key, runnel.FromOldest(), since, b.cfg.MaxRecords)
		return b.read(ctx, from, func(record *types.Record) bool {
			this, more := b.until(record)
			if this && sequenceOf(record).Compare(since.Sequence) > 0 {
				b.see(record, keys)
			}
			return more
		})
	})
}

// outdated reports whether a state is from before the window of a rebuild. To bring it up would
// take longer, and the filter would forget what it knows.
func (b *rebuilder) outdated(ctx context.Context, since runnel.Position) (bool, error) {
	end, err := b.arrival(ctx, b.of.first.Key)
	if err != nil {
		return false, err
	}
	next, err := b.firstArrival(ctx, b.of.first.Key, since)
	return !next.IsZero() && end.Sub(next) > b.filter.Remembers(), err
}

func (h *holding) newRebuilder(at runnel.Position) *rebuilder {
	return &rebuilder{
		of: h, cfg: h.run.cfg, filter: new(aggregate.Filter), at: at,
		origin: h.run.originOf(h.first), told: time.Now(), firsts: map[runnel.ShardID]time.Time{},
	}
}

// build runs how, until the worker or the shard's reading is to stop.
func (b *rebuilder) build(
	ctx context.Context, how func(context.Context) error,
) (*aggregate.Filter, error) {
	h, at := b.of, b.at
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-h.stopping:
			cancel(errStopping)
		case <-ctx.Done():
		}
	}()
	defer func() {
		cancel(nil)
		<-watched
	}()
	if err := how(ctx); err != nil {
		return nil, err
	}
	if b.records > 0 {
		h.event(Event{Kind: EventRebuilt, Position: at, Records: b.records})
	}
	return b.filter, nil
}

// rebuilder feeds a filter with the window's shards, parents before children, one after the other.
// The result is the same as with a filter for each shard and the Union where they join: a lane is
// in one shard at a time, and a low-water mark that was met in one parent drops from the other the
// units that the Union would forget. So it takes one filter's memory however many ancestors there
// are.
type rebuilder struct {
	of      *holding
	cfg     Config // the worker's
	filter  *aggregate.Filter
	decoder aggregate.Decoder
	at      runnel.Position              // the position for which the filter is made
	origin  runnel.From                  // the meaning of at if it is Start
	from    time.Time                    // the window's beginning
	firsts  map[runnel.ShardID]time.Time // the results of firstOf
	records int                          // Kinesis records read again
	told    time.Time                    // time of the last progress event
}

// progressInterval is the time between two events of a rebuild that takes long.
const progressInterval = 5 * time.Second

func (b *rebuilder) run(ctx context.Context) error {
	listed, err := b.of.listing(ctx)
	if err != nil {
		return err
	}
	own, ok := listed[b.of.first.Key]
	if !ok { // gone, and its reader will find out
		return nil
	}
	beginning := b.at == runnel.Start() && b.origin == runnel.FromOldest()
	if beginning && !anyListed(listed, own.Parents) {
		return nil
	}
	end, err := b.arrival(ctx, own.ID)
	if err != nil {
		return err
	}
	b.origin = b.origin.Pin(end) // LATEST, of a row that another program made: now
	// Read three tenths of H more: the first record may come a step of H/5 behind the window's
	// beginning, and the clocks of two shards may differ.
	remembers := b.filter.Remembers()
	for span := remembers + remembers*3/40; ; span *= 2 {
		b.from = later(end.Add(-span), time.Unix(0, 0))
		b.filter = new(aggregate.Filter)
		met := map[runnel.ShardID]bool{own.ID: true}
		err := b.ancestors(ctx, listed, own, met)
		if err == nil && !beginning {
			err = b.feed(ctx, own, b.until)
		}
		if err != nil || b.filter.Elapsed() >= remembers {
			return err
		}
		more, err := b.earlier(ctx, listed, own, map[runnel.ShardID]bool{})
		if err != nil || !more {
			return err
		}
	}
}

// earlier reports whether s or one of its ancestors has a record before the window.
func (b *rebuilder) earlier(
	ctx context.Context, listed map[runnel.ShardID]runnel.Shard, s runnel.Shard,
	met map[runnel.ShardID]bool,
) (bool, error) {
	met[s.ID] = true
	first, err := b.firstOf(ctx, s.ID)
	if err != nil || !first.IsZero() && first.Before(b.from) {
		return err == nil, err
	}
	for _, id := range s.Parents {
		parent, ok := listed[id]
		if !ok || met[id] {
			continue
		}
		if more, err := b.earlier(ctx, listed, parent, met); more || err != nil {
			return more, err
		}
	}
	return false, nil
}

// firstOf returns the arrival of a shard's first record. It asks the stream only once.
func (b *rebuilder) firstOf(ctx context.Context, shard runnel.ShardID) (time.Time, error) {
	if first, known := b.firsts[shard]; known {
		return first, nil
	}
	first, err := b.firstArrival(ctx, shard, runnel.Start())
	if err == nil {
		b.firsts[shard] = first
	}
	return first, err
}

func anyListed(listed map[runnel.ShardID]runnel.Shard, ids []runnel.ShardID) bool {
	for _, id := range ids {
		if _, ok := listed[id]; ok {
			return true
		}
	}
	return false
}

// arrival returns the arrival of the first record that the filter may have to judge, or an earlier
// time. It is the arrival of the record at the position, the time at which the application begins,
// or now if no record has come yet.
func (b *rebuilder) arrival(ctx context.Context, shard runnel.ShardID) (time.Time, error) {
	if b.at == runnel.Start() && !b.origin.Time().IsZero() {
		return b.origin.Time(), nil
	}
	if b.at != runnel.Start() || b.origin == runnel.FromOldest() {
		first, err := b.firstArrival(ctx, shard, b.at)
		if !first.IsZero() || err != nil {
			return first, err
		}
	}
	_, now, err := describe(ctx, b.cfg)
	return now.earliest.Truncate(time.Millisecond), err // arrivals have whole milliseconds
}

// firstArrival returns the arrival of the record at a position or behind it, or of a shard's first
// record; the zero time if there is none.
func (b *rebuilder) firstArrival(
	ctx context.Context, shard runnel.ShardID, at runnel.Position,
) (first time.Time, err error) {
	from := b.of.run.pages(shard, runnel.FromOldest(), at, 1)
	err = b.read(ctx, from, func(record *types.Record) bool {
		first = aws.ToTime(record.ApproximateArrivalTimestamp)
		return false
	})
	return first, err
}

// ancestors feeds the ends of all ancestors of s, as far as the window reaches. It goes back no
// further than to a shard that had a record before the window, since that shard existed when the
// window began.
func (b *rebuilder) ancestors(
	ctx context.Context, listed map[runnel.ShardID]runnel.Shard, s runnel.Shard,
	met map[runnel.ShardID]bool,
) error {
	if !anyListed(listed, s.Parents) {
		return nil
	}
	first, err := b.firstOf(ctx, s.ID)
	if err != nil || !first.IsZero() && first.Before(b.from) {
		return err
	}
	for _, id := range s.Parents {
		parent, ok := listed[id]
		if !ok || met[id] {
			continue
		}
		met[id] = true
		if err := b.ancestors(ctx, listed, parent, met); err != nil {
			return err
		}
		if err := b.feed(ctx, parent, all); err != nil {
			return err
		}
	}
	return nil
}

// feed passes a shard's records from the window's beginning on to the filter. wanted decides for
// each record whether the filter sees it (this), and whether reading goes on behind it (more).
func (b *rebuilder) feed(
	ctx context.Context, s runnel.Shard, wanted func(*types.Record) (this, more bool),
) error {
	window := b.of.run.pages(s.ID, runnel.FromTime(b.from), runnel.Start(), b.cfg.MaxRecords)
	return b.read(ctx, window, func(record *types.Record) bool {
		this, more := wanted(record)
		if this {
			b.see(record, s.Range)
		}
		return more
	})
}

func all(*types.Record) (this, more bool) { return true, true }

// until accepts the records at or before the position, except for a record that the position lies
// inside: the state there is that before the record, which is read again.
func (b *rebuilder) until(record *types.Record) (this, more bool) {
	if b.at == runnel.Start() {
		before := aws.ToTime(record.ApproximateArrivalTimestamp).Before(b.origin.Time())
		return before, before
	}
	switch order := sequenceOf(record).Compare(b.at.Sequence); {
	case order < 0:
		return true, true
	case order > 0:
		return false, false
	}
	inside := b.decoder.Open(record.Data) && b.at.Sub < int64(b.decoder.Len())-1
	return !inside, false
}

func (b *rebuilder) see(record *types.Record, keys keyspace.Range) {
	arrival := aws.ToTime(record.ApproximateArrivalTimestamp)
	if !b.decoder.Open(record.Data) {
		b.filter.Advance(arrival)
	} else if b.decoder.Check(keys) == nil {
		for range b.filter.Pass(&b.decoder, arrival) {
			continue // Pass takes the units in
		}
	}
	if b.records++; time.Since(b.told) >= progressInterval {
		b.told = time.Now()
		b.of.event(Event{Kind: EventRebuilding, Position: b.at, Records: b.records})
	}
}

// read calls take for every record until it returns false, there are no more, or the shard is
// gone. A shard that is not closed has no more at its tip, which a page without records shows.
func (b *rebuilder) read(
	ctx context.Context, cfg pages.Config, take func(*types.Record) bool,
) error {
	cfg.Pace.Tip = 0
	source := pages.New(cfg)
	for {
		page, err := source.Next(ctx)
		if err != nil {
			return err
		}
		for i := range page.Records {
			if !take(&page.Records[i]) {
				return nil
			}
		}
		if page.Ended || page.Behind == 0 && len(page.Records) == 0 {
			return nil
		}
	}
}
