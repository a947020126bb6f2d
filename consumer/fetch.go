package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
	"github.com/runnel-stream/runnel/sink"
)

// page is a range of a shard, opened: whole Kinesis records, out of one read.
type page struct {
	records []runnel.Record
	bytes   int64           // of the records
	through runnel.Position // the last Kinesis record's end, or the end of the page before
	change  []byte          // of the reader's state, since the page before, for a sink

	read           int       // Kinesis records
	oldest, newest time.Time // their arrivals; zero if there is none
	doubles        int       // user records that were dropped
	malformed      int       // units; see aggregate.Verdict
	unfiltered     int       // units
	voided         []*VoidError

	behind   time.Duration
	caughtUp bool // every record that was there at the worker's start has been read
	ended    bool // nothing follows, ever
	children []shardmap.Shard
	gap      *sink.Gap // before the records
	complete time.Time // every arrival up to then is at or before through; zero if unknown
}

// fetcher reads one shard from a position on, one page ahead of the deliverer: it holds the next
// page while the deliverer works on the last one, and reads no further. It tries again after every
// failure.
type fetcher struct {
	*shardReader
	opener
	left  answer // the part of the last read that has not been opened yet
	pages chan page

	cancel context.CancelFunc
	done   chan struct{}
}

// fetch starts a fetcher that reads the records after the position after, or from the lease's
// origin on. seen then belongs to the fetcher.
func (r *run) fetch(
	ctx context.Context, held lease.Lease, after runnel.Position, open opener, complete time.Time,
) *fetcher {
	f := r.newFetcher(held, after, r.cfg.MaxRecords)
	f.delivers, f.guarded, f.parents = true, true, held.Parents
	f.guard = guard{complete: complete}
	open.after = after
	f.opener = open
	ctx, f.cancel = context.WithCancel(ctx)
	go func() {
		defer close(f.done)
		f.loop(ctx)
	}()
	return f
}

// newFetcher makes a fetcher that drops nothing.
func (r *run) newFetcher(l lease.Lease, after runnel.Position, limit int) *fetcher {
	return &fetcher{
		shardReader: r.reader(l.Key, originOf(l), after, limit),
		opener:      newOpener(l.Key, after),
		pages:       make(chan page), done: make(chan struct{}),
	}
}

// stop ends the fetcher and waits for it.
func (f *fetcher) stop() {
	f.cancel()
	<-f.done
}

func (f *fetcher) loop(ctx context.Context) {
	for ctx.Err() == nil {
		p, err := f.read(ctx)
		if err != nil {
			if !f.recover(ctx, err) {
				continue
			}
			p = page{
				ended: true, gap: goneGap(f.after), through: f.after, change: f.change(),
				complete: f.complete,
			}
		}
		select {
		case <-ctx.Done():
			return
		case f.pages <- p:
		}
		switch {
		case p.ended:
			return
		case len(f.left.records) > 0: // no call comes next
		case !wait(ctx, f.pace.after(p.read, p.behind), nil):
			return
		}
	}
}

// read returns the next page: from the rest of the last read, or from another one. A page ends when
// it has as many records as one read asks for, since a megabyte may hold a hundred thousand of
// them, but it never ends inside a Kinesis record.
func (f *fetcher) read(ctx context.Context) (page, error) {
	var p page
	if len(f.left.records) == 0 {
		var err error
		if f.left, err = f.next(ctx); err != nil {
			return page{}, err
		}
	}
	if f.left.gap {
		p.gap, f.after = f.gapBefore()
	}
	p.records = make([]runnel.Record, 0, len(f.left.records))
	for len(f.left.records) > 0 && len(p.records) < f.cfg.MaxRecords {
		if err := f.open(&f.left.records[0], &p); err != nil {
			if p.read == 0 {
				return page{}, fmt.Errorf("reading stops here until a worker with another "+
					"Config.Void, VoidDrop or VoidDeliver, goes on: %w", err)
			}
			break
		}
		f.left.records = f.left.records[1:]
	}
	p.through, p.behind, f.left.gap = f.after, f.left.behind, false
	if len(f.left.records) > 0 {
		p.behind = max(p.behind, time.Millisecond)
	} else {
		p.ended, p.children, f.left = f.left.ended, f.left.children, answer{}
		p.complete = f.complete
	}
	p.change = f.change()
	p.caughtUp = f.once.caughtUp(f.shardReader.shard, p)
	return p, nil
}
