package follow

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/opener"
	"github.com/runnel-stream/runnel/internal/pages"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/shardmap"
)

// reader reads one shard, a page at a time.
type reader struct {
	run    *run
	shard  runnel.Shard
	start  start
	cursor *pages.Cursor
	opener opener.Opener
	filter *aggregate.Filter
	// complete is a time up to which all records were read, or are not in demand.
	complete time.Time
	failing  error     // of the last read, unless it succeeded or was throttled
	since    time.Time // the time of the first such error in a row
	void     error     // the void aggregate at which the reading ends
}

const callTimeout = 20 * time.Second

var backoff = retry.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}

func newReader(r *run, n *node) *reader {
	return &reader{
		run: r, shard: n.shard, start: n.start, filter: aggregate.Union(n.filters...),
		complete: n.complete, opener: opener.Opener{
			Shard: n.shard.ID, Keys: n.shard.Range, Void: r.cfg.Void,
		},
	}
}

// begin finds the place where the reading begins. some is false if nothing is to be read.
func (r *reader) begin(ctx context.Context) (some bool, err error) {
	from := r.start.from
	if ask := r.run.cfg.Begin; ask != nil {
		at, err := ask(ctx, r.shard, r.filter)
		if err != nil {
			return false, err
		}
		if from = at.From; at.After.Sequence.IsNumber() {
			from = runnel.FromSequence(at.After.Sequence)
		}
		if at.Filter != nil {
			r.filter = at.Filter
		}
		if at.Complete.After(r.complete) {
			r.complete = at.Complete
		}
		if r.opener.After = at.After; at.After == runnel.End() {
			return false, nil
		}
	}
	if !r.run.cfg.Doubles {
		r.opener.Filter = r.filter
	}
	r.cursor = pages.New(pages.Config{
		Kinesis: r.run.reads, Stream: r.run.cfg.Stream, Shard: r.shard.ID, From: from,
		CallTimeout: callTimeout, Backoff: backoff, OnFailure: r.trouble,
		Pace:   pages.Pace{Least: r.run.cfg.Interval, Idle: r.run.cfg.IdleInterval},
		Budget: pages.NewBudget(pages.LimitsOf(r.run.cfg.Kinesis, r.run.cfg.ReadRate)),
		Of:     knownStream{r.run}, Checked: true, Gaps: true,
		Complete: r.complete, Parents: r.shard.Parents,
	})
	r.run.cfg.OnNotice(Notice{Kind: Began, Shard: r.shard.ID, After: from.Sequence()})
	return true, nil
}

// notice reports an event of the shard, behind the last record that was read.
func (r *reader) notice(kind Kind, err error) {
	r.run.cfg.OnNotice(Notice{
		Kind: kind, Shard: r.shard.ID, After: r.opener.After.Sequence, Err: err,
	})
}

// trouble reports the first one of several failures in a row.
func (r *reader) trouble(err error, failures int) {
	if r.failing = err; failures == 1 {
		r.notice(Trouble, err)
	}
}

// read reads the shard to its end, or as far as Config.Once demands, and returns the outcome for
// its children.
func (r *reader) read(ctx context.Context) outcome {
	some, err := r.begin(ctx)
	done := outcome{shard: r.shard, filter: r.filter, complete: r.complete, err: err}
	if err == nil && !some {
		done.children, done.err = r.children(ctx, nil)
	}
	if err != nil || !some {
		return done
	}
	for {
		page, settled, err := r.page(ctx)
		if err == nil && page.Ended {
			settled = true
			done.children, err = r.children(ctx, page.Children)
		}
		if err != nil {
			done.err = err
			return done
		}
		if settled {
			r.notice(Ended, nil)
			done.complete = page.Complete
			return done
		}
	}
}

// page makes one attempt at a read when it is due, and has its records handled. It holds no records
// while it waits for its turn. settled is true if no further record is in demand.
func (r *reader) page(ctx context.Context) (page pages.Page, settled bool, err error) {
	if err := r.cursor.Await(ctx); err != nil {
		return page, false, err
	}
	select {
	case r.run.parallel <- struct{}{}:
	case <-ctx.Done():
		return page, false, context.Cause(ctx)
	}
	defer func() { <-r.run.parallel }()
	first := r.failing == nil
	r.failing = nil
	page, ok, err := r.cursor.Try(ctx)
	if first {
		r.since = time.Now()
	}
	if err != nil && !isLasting(err) {
		err = fmt.Errorf("shard %s: %w", r.shard.ID, err)
	}
	if err == nil && !ok && r.failing != nil && r.run.cfg.GiveUp > 0 &&
		time.Since(r.since) > r.run.cfg.GiveUp {
		err = fmt.Errorf("shard %s: given up after %s: %w", r.shard.ID,
			time.Since(r.since).Round(time.Second), r.failing)
	}
	if err != nil || !ok {
		return page, false, err
	}
	switch {
	case page.Gone:
		r.notice(Gone, nil)
	case page.Gap:
		r.notice(Gap, nil)
	}
	if r.run.cfg.Once && !page.Ended && !r.start.mustEnd {
		settled = page.Behind == 0
		if n := len(page.Records); n > 0 {
			last := aws.ToTime(page.Records[n-1].ApproximateArrivalTimestamp)
			settled = settled || last.After(r.run.since)
		}
	}
	return page, settled, r.handle(ctx, page.Records)
}

// children returns the children of this shard: those that its last page named, or else those that
// the stream lists. A stream lists them a little later than it closes the shard.
func (r *reader) children(
	ctx context.Context, named []runnel.Shard,
) ([]runnel.Shard, error) {
	if len(named) > 0 || r.run.cfg.Once || r.run.cfg.Shard != "" {
		return named, nil
	}
	for failures := 1; ; failures++ {
		shards, err := shardmap.List(ctx, r.run.cfg.Kinesis, r.run.cfg.Stream, nil)
		switch children := shardmap.ChildrenOf(shards, r.shard.ID); {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err == nil && (len(children) > 0 || failures > listings):
			return children, nil
		case err != nil && !awserr.Kinesis.Transient(err):
			return nil, err
		case err != nil:
			r.trouble(err, failures)
		}
		if err := backoff.Wait(ctx, failures); err != nil {
			return nil, err
		}
	}
}

// listings is the number of attempts to find the children of a closed shard.
const listings = 8

// knownStream is the stream as the cursors of a run see it.
type knownStream struct{ run *run }

func (k knownStream) Horizon() shardmap.Horizon { return *k.run.horizon.Load() }

func (k knownStream) Same(ctx context.Context) error { return k.run.identity.Same(ctx) }

func (k knownStream) Shards(ctx context.Context) ([]runnel.Shard, error) {
	return shardmap.List(ctx, k.run.cfg.Kinesis, k.run.cfg.Stream, nil)
}

func (k knownStream) Lasting(err error) bool { return isLasting(err) }
