package follow

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/shardmap"
)

// reader reads one shard, a page at a time.
type reader struct {
	run     *run
	shard   shardmap.Shard
	start   start
	filter  *aggregate.Filter
	decoder aggregate.Decoder

	after    runnel.SequenceNumber // the last record that was read; "" if none
	iterator string
	// unsure is set by a new iterator: its first records show whether others were trimmed.
	unsure bool
	// complete is a time by the stream's clock up to which all records of the shard have been read;
	// zero where the reading begins.
	complete time.Time
	failures int // in a row
	idle     time.Duration
	last     time.Time // of the last read
}

const callTimeout = 20 * time.Second

func newReader(r *run, n *node) *reader {
	return &reader{
		run: r, shard: n.shard, start: n.start, filter: aggregate.Union(n.filters...),
		complete: n.complete,
	}
}

// read reads the shard to its end, or as far as Config.Once demands, and returns the outcome for
// its children.
func (r *reader) read(ctx context.Context) outcome {
	r.run.cfg.Notice(Notice{Kind: Began, Shard: r.shard.ID, After: r.start.from.sequence})
	done := outcome{shard: r.shard, filter: r.filter}
	for {
		p, err := r.page(ctx)
		if err == nil && p.ended {
			done.children, err = r.children(ctx, p.children)
			p.settled = err == nil
		}
		if err != nil {
			if done.err = r.recover(ctx, err); done.err != nil {
				return done
			}
			continue
		}
		if p.settled {
			r.run.cfg.Notice(Notice{Kind: Ended, Shard: r.shard.ID, After: r.after})
			done.complete = r.complete
			return done
		}
		if done.err = r.pace(ctx, p); done.err != nil {
			return done
		}
	}
}

// page is the result of one read.
type page struct {
	records  int
	ended    bool // nothing follows, ever
	settled  bool // no further record is in demand
	children []shardmap.Shard
}

// page makes one read and has its records handled. It holds no records while it waits for its turn.
func (r *reader) page(ctx context.Context) (page, error) {
	select {
	case r.run.parallel <- struct{}{}:
	case <-ctx.Done():
		return page{}, context.Cause(ctx)
	}
	defer func() { <-r.run.parallel }()
	if r.shardEnded() {
		return page{ended: true}, nil
	}
	if r.iterator == "" {
		if err := r.seek(ctx); err != nil {
			return page{}, err
		}
	}
	out, err := r.get(ctx)
	if err != nil {
		return page{}, err
	}
	p := page{records: len(out.Records)}
	if r.iterator = aws.ToString(out.NextShardIterator); r.iterator == "" {
		p.ended, r.iterator = true, endOfShard
		if p.children, err = shardmap.Children(out.ChildShards); err != nil {
			return page{}, err
		}
	}
	r.failures = 0
	if r.run.cfg.Once && !p.ended && !r.start.mustEnd {
		behind := aws.ToInt64(out.MillisBehindLatest)
		unknown := out.MillisBehindLatest == nil && p.records > 0
		p.settled = behind == 0 && !unknown || p.records > 0 &&
			aws.ToTime(out.Records[p.records-1].ApproximateArrivalTimestamp).After(r.run.since)
	}
	return p, r.handle(ctx, out.Records)
}

// get makes one call of GetRecords, and reports a gap. If a page comes so late that records before
// it may have been trimmed, get discards it and asks again from the last record on. Package
// consumer does the same, and its gap.go gives the reasons.
func (r *reader) get(ctx context.Context) (*kinesis.GetRecordsOutput, error) {
	r.last = time.Now()
	calling, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := r.run.cfg.Client.GetRecords(calling,
		&kinesis.GetRecordsInput{ShardIterator: aws.String(r.iterator)})
	if err != nil {
		return nil, err
	}
	earliest, now := awsclient.AnswerTime(r.last, time.Now(), out.ResultMetadata)
	if err := r.shortened(ctx, out, now); err != nil {
		return nil, err
	}
	horizon := r.run.horizon.Load()
	overtaken := !r.complete.IsZero() && horizon.Passed(r.complete, now)
	if overtaken && !r.unsure {
		if err := r.seek(ctx); err != nil {
			return nil, err
		}
		return r.get(ctx) // with a new iterator the reader is unsure, so this happens once
	}
	tip := len(out.Records) == 0 && aws.ToInt64(out.MillisBehindLatest) == 0
	ended := aws.ToString(out.NextShardIterator) == ""
	if r.unsure && (len(out.Records) > 0 || tip || ended) {
		r.unsure = false
		if r.missing(out, overtaken, horizon.Young(now)) {
			r.run.cfg.Notice(Notice{Kind: Gap, Shard: r.shard.ID, After: r.after})
		}
	}
	switch n := len(out.Records); {
	case n > 0:
		r.complete = aws.ToTime(out.Records[n-1].ApproximateArrivalTimestamp)
	case tip && !ended && earliest.After(r.complete):
		r.complete = earliest
	}
	return out, nil
}

// shortened asks for the retention period again, if a shorter period can have removed the records
// before a page.
func (r *reader) shortened(
	ctx context.Context, out *kinesis.GetRecordsOutput, now time.Time,
) error {
	next := now
	if len(out.Records) > 0 {
		next = aws.ToTime(out.Records[0].ApproximateArrivalTimestamp)
	}
	if r.unsure || r.complete.IsZero() || !r.run.horizon.Load().Shortened(r.complete, next, now) {
		return nil
	}
	return r.run.identity.Same(ctx)
}

// missing reports whether records between the last one read and a page, the first one of a new
// iterator, may have been trimmed. If overtaken is true, the stream can have removed unread
// records. If young is true, it can have removed none; a record that is gone all the same is a gap,
// too.
func (r *reader) missing(out *kinesis.GetRecordsOutput, overtaken, young bool) bool {
	last, possible := r.after, overtaken || young
	if last == "" && r.start.from.IsSequence() {
		last, possible = r.start.from.sequence, true
	}
	switch {
	case last == "":
		return overtaken // there is no last record to look for
	case len(out.Records) == 0:
		return possible
	}
	first := runnel.SequenceNumber(aws.ToString(out.Records[0].SequenceNumber))
	return possible && last.Compare(first) < 0
}

// endOfShard replaces the iterator after the shard's end.
const endOfShard = "end"

func (r *reader) shardEnded() bool { return r.iterator == endOfShard }

// seek makes an iterator that begins with the last record that was read. That record is dropped. If
// it does not come, it and the records after it have been trimmed.
func (r *reader) seek(ctx context.Context) error {
	from := r.start.from
	if r.after != "" {
		from = AtSequence(r.after)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	sent := time.Now()
	out, err := r.run.cfg.Client.GetShardIterator(ctx, from.input(r.run.cfg.Stream, r.shard.ID))
	if err != nil {
		return err
	}
	// The call named the stream, and an iterator belongs to the stream that had the name at that
	// time.
	if err := r.run.identity.Same(ctx); err != nil {
		return err
	}
	r.unsure = true
	if r.start.from == Latest {
		// If this iterator is lost before a record comes, the next one begins at the same moment.
		if date, ok := awsmiddleware.GetServerTime(out.ResultMetadata); ok {
			sent = date
		}
		r.start.from = At(sent)
	}
	r.iterator = aws.ToString(out.ShardIterator)
	return nil
}

// children returns the children of this shard: those that its last page named, or else those that
// the stream lists.
func (r *reader) children(
	ctx context.Context, named []shardmap.Shard,
) ([]shardmap.Shard, error) {
	if len(named) > 0 || r.run.cfg.Once || r.run.cfg.Shard != "" {
		return named, nil
	}
	shards, err := shardmap.List(ctx, r.run.cfg.Client, r.run.cfg.Stream, nil)
	if err != nil {
		return nil, err
	}
	named = shardmap.ChildrenOf(shards, r.shard.ID)
	if len(named) == 0 && r.failures < listings {
		return nil, errNoChildren
	}
	return named, nil
}

// listings is the number of attempts to find the children of a closed shard.
const listings = 8

var errNoChildren = errors.New("the shard is closed, and the stream does not list its children")

// pace waits until the next read is due. The waits grow while no record comes.
func (r *reader) pace(ctx context.Context, p page) error {
	if p.records > 0 {
		r.idle = r.run.cfg.Interval
	} else {
		r.idle = min(max(2*r.idle, r.run.cfg.Interval), r.run.cfg.IdleInterval)
	}
	return retry.Wait(ctx, r.idle-time.Since(r.last))
}
