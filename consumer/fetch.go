package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/pages"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/sink"
)

// page is a range of a shard, opened: whole Kinesis records, out of one read.
type page struct {
	records []runnel.Record
	bytes   int64             // of the records' data
	memory  int64             // of the records
	account *account          // that counts it; nil if none does
	through runnel.Position   // the last Kinesis record's end, or the end of the page before
	change  []byte            // of a sink's reader's state, since the page before
	steps   []step            // of a handler's filter
	base    *aggregate.Filter // the filter before the first unit, until a step has it

	read           int       // Kinesis records
	oldest, newest time.Time // their arrivals; zero if there is none
	doubles        int       // user records that were dropped
	malformed      int       // units; see aggregate.Verdict
	unfiltered     int       // units
	voided         []*VoidError

	behind   time.Duration
	at       time.Time // of the read
	sight    *sight    // once the form has it
	caughtUp bool      // every record that was there at the worker's start has been read
	ended    bool      // nothing follows, ever
	children []runnel.Shard
	gap      *sink.Gap // before the records
	complete time.Time // every arrival up to then is at or before through; zero if unknown
}

// fetcher reads one shard from a position on, one page ahead of the deliverer: it holds the next
// page while the deliverer works on the last one, and reads no further.
type fetcher struct {
	run    *run
	source pages.Source
	reading
	left    pages.Page // the part of the last read that has not been opened yet
	got     time.Time  // when that came
	account *account   // nil if none counts the memory
	pages   chan page
	// again makes a source that reads on after a position, up to which every record has arrived
	// before the time complete. Nil: what was read cannot be discarded.
	again   func(after runnel.Position, complete time.Time) pages.Source
	arrived time.Time // the last opened record; zero before

	// These are the Kinesis records of the last page with a user record, its user records, and
	// their memory.
	units, users, memory int64

	cancel context.CancelFunc
	done   chan struct{}
}

// fetch starts a fetcher that reads the records of a holding's shard after the position after, or
// from the lease's origin on. open then belongs to the fetcher.
func (r *run) fetch(
	ctx context.Context, of *holding, after runnel.Position, open reading,
) *fetcher {
	held := of.first
	cfg := r.pages(held.Key, r.originOf(held), after, r.cfg.MaxRecords)
	cfg.Checked, cfg.Gaps, cfg.Parents = true, true, held.Parents
	cfg.Complete = of.completeTo()
	open.After = after
	account := r.buffer.add(r.cfg.MaxRecords)
	cfg.Room, cfg.Unused = account.room, account.unused
	source, end := r.source(of, cfg)
	f := r.newFetcher(source, open)
	f.account = account
	if _, polls := source.(*pages.Cursor); polls {
		account.lends = true
		f.again = func(after runnel.Position, complete time.Time) pages.Source {
			if after != runnel.Start() {
				cfg.From = runnel.FromSequence(after.Sequence)
			}
			if !complete.IsZero() {
				cfg.Complete = complete
			}
			return pages.New(cfg)
		}
	}
	ctx, f.cancel = context.WithCancel(ctx)
	go func() {
		defer close(f.done)
		defer end()
		f.loop(ctx)
	}()
	return f
}

func (r *run) newFetcher(source pages.Source, open reading) *fetcher {
	return &fetcher{
		run: r, source: source, reading: open,
		pages: make(chan page), done: make(chan struct{}),
	}
}

// stop ends the fetcher and waits for it.
func (f *fetcher) stop() {
	f.cancel()
	<-f.done
	f.account.close()
}

func (f *fetcher) loop(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		p, err := f.read(ctx)
		var void *VoidError
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &void):
			failures++
			f.run.failed(f.Shard, err)
			f.endTurn()
			retry.WaitOr(ctx, backoff(failures, longestBackoff), nil)
			continue
		case errors.Is(err, errStopping): // the deliverer sees it, too
			return
		case err != nil: // it ends the worker, which stops the fetcher
			f.run.giveUp(err)
			return
		}
		if !f.handOver(ctx, p) {
			return
		}
		if failures = 0; p.ended {
			return
		}
		if len(f.left.Records) == 0 {
			f.account.settle(time.Since(f.got))
		}
	}
}

// handOver passes a page to the deliverer. While it waits, it discards the rest of a read that is
// out of its turn. It returns false if ctx ends first.
func (f *fetcher) handOver(ctx context.Context, p page) bool {
	for {
		f.endTurn()
		var turns <-chan time.Time
		if len(f.left.Records) > 0 && f.again != nil {
			turns = time.After(turn)
		}
		select {
		case <-ctx.Done():
			return false
		case f.pages <- p:
			return true
		case <-turns:
		}
	}
}

// endTurn discards the part of the last read that has not been opened, if it is a loan that is due.
// The part is read again.
func (f *fetcher) endTurn() {
	if len(f.left.Records) == 0 || f.again == nil || !f.account.overdue(f.got) {
		return
	}
	f.account.opened(sizesOf(f.left.Records), 0)
	f.left, f.source = pages.Page{}, f.again(f.After, f.arrived)
	f.account.settle(time.Since(f.got))
}

// read returns the next page: from the rest of the last read, or from another one. A page ends when
// it has as many records as one read asks for, since a megabyte may hold a hundred thousand of
// them, but it never ends inside a Kinesis record.
func (f *fetcher) read(ctx context.Context) (page, error) {
	var p page
	if len(f.left.Records) == 0 {
		var err error
		if f.left, err = f.source.Next(ctx); err != nil {
			return page{}, err
		}
		f.account.read(f.left.Records)
		f.got = time.Now()
	}
	switch {
	case f.left.Gone:
		p.gap = goneGap(f.After)
	case f.left.Gap:
		p.gap, f.After = f.gapBefore()
	}
	from, full, opened := f.After, f.account.page(), int64(0)
	p.records, p.account = make([]runnel.Record, 0, f.expected(full)), f.account
	for len(f.left.Records) > 0 && len(p.records) < f.run.cfg.MaxRecords &&
		(p.memory == 0 || p.memory < full) {
		if err := f.open(ctx, &f.left.Records[0], &p); err != nil {
			var void *VoidError
			switch {
			case p.read > 0: // first the records before
			case errors.As(err, &void):
				return page{}, fmt.Errorf("reading stops here until a worker with another "+
					"Config.Void than VoidStop goes on: %w", err)
			default:
				return page{}, err
			}
			break
		}
		f.arrived = aws.ToTime(f.left.Records[0].ApproximateArrivalTimestamp)
		opened += sizeOf(&f.left.Records[0])
		f.left.Records[0] = types.Record{} // or the rest of the read would keep it in memory
		f.left.Records = f.left.Records[1:]
	}
	f.account.opened(opened, p.memory)
	if len(p.records) > 0 {
		f.units, f.users, f.memory = int64(p.read), int64(len(p.records)), p.memory
	}
	p.through, p.behind, f.left.Gap = f.After, f.left.Behind, false
	p.at = f.got
	if len(f.left.Records) > 0 {
		p.behind = max(p.behind, time.Millisecond)
	} else {
		p.ended, p.children = f.left.Ended, f.left.Children
		p.complete, f.left = f.left.Complete, pages.Page{}
	}
	if f.mirror != nil {
		p.change = f.change()
	} else {
		f.step(&p, from)
	}
	p.caughtUp = f.run.once.caughtUp(f.Shard, p)
	return p, nil
}

// expected estimates the user records of the next page, which is full at so many bytes, by the page
// before.
func (f *fetcher) expected(full int64) int {
	n := int64(len(f.left.Records))
	if n == 0 {
		return 0
	}
	each, unit := sizeOf(&f.left.Records[0]), int64(1)
	if f.users > 0 {
		each, unit = f.memory/f.users, f.users/f.units+1
	}
	return int(min(n*unit, full/each+unit, int64(f.run.cfg.MaxRecords)+unit))
}
