package pages

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/streamref"
)

// Cursor reads the records of one shard by GetShardIterator and GetRecords. It is used by one
// goroutine at a time.
type Cursor struct {
	cfg  Config
	from runnel.From
	// at is the last record read, or, while included is set, the one at which the reading begins;
	// "" if there is none.
	at       runnel.SequenceNumber
	included bool
	iterator string
	guard    guard
	pace     pacer
	budget   *Budget
	failures int       // in a row
	last     time.Time // when the last read was sent
	due      time.Time // of the next read, by pace and back-off
	reserved bool      // by Config.Room, for a page that has not come
	end      *Page     // the page after the shard's end
}

var _ Source = (*Cursor)(nil)

// New makes a cursor. It makes no call yet.
func New(cfg Config) *Cursor {
	if cfg.Budget == nil {
		cfg.Budget = NewBudget(LimitsOf(cfg.Kinesis.API(), 0))
	}
	return &Cursor{
		cfg: cfg, from: cfg.From, at: cfg.From.Sequence(), included: true,
		guard: guard{of: cfg.Of, shard: cfg.Shard, parents: cfg.Parents, complete: cfg.Complete},
		pace:  pacer{Pace: cfg.Pace}, budget: cfg.Budget,
	}
}

// Stats returns the totals of the shard's reading so far, by all cursors that share the budget. It
// may be called by any goroutine.
func (c *Cursor) Stats() Stats { return c.budget.Stats() }

// Next waits until the next read is due, and returns its page. It tries again after errors, as
// Config says.
func (c *Cursor) Next(ctx context.Context) (Page, error) {
	for {
		if err := c.Await(ctx); err != nil {
			return Page{}, err
		}
		if page, ok, err := c.Try(ctx); ok || err != nil {
			return page, err
		}
	}
}

// Await waits until the next read is due: after a page by the pace, after an error by the back-off,
// and always by the budget. It returns the cause of ctx if that ends first.
func (c *Cursor) Await(ctx context.Context) error {
	if c.end != nil {
		return retry.Wait(ctx, 0)
	}
	now := time.Now()
	return retry.Wait(ctx, max(c.due.Sub(now), c.budget.wait(now)))
}

// DueBy makes the next read due at t if it is due later. The budget may still delay it.
func (c *Cursor) DueBy(t time.Time) {
	if t.Before(c.due) {
		c.due = t
	}
}

// Try makes one attempt at the next page, at once. Without a page and without an error, the attempt
// failed and another one may succeed after Await.
func (c *Cursor) Try(ctx context.Context) (page Page, ok bool, err error) {
	if c.end != nil {
		return *c.end, true, nil
	}
	page, err = c.attempt(ctx)
	if err != nil {
		c.unused()
	}
	c.reserved = false
	if err != nil {
		gone, err := c.recover(ctx, err)
		if !gone {
			return Page{}, false, err
		}
		page = Page{Ended: true, Gone: true, Complete: c.guard.complete}
	}
	if page.Ended {
		end := page
		end.Records, end.Gap, end.First = nil, false, ""
		c.end = &end
		return page, true, nil
	}
	now := time.Now()
	c.due = c.pace.due(c.last, now, &page, c.budget.distance(now))
	return page, true, nil
}

// attempt makes one GetRecords call, and makes the iterator first if there is none. If an answer
// may leave records out, attempt discards it and asks again from its last record on.
func (c *Cursor) attempt(ctx context.Context) (Page, error) {
	if c.iterator == "" {
		if err := c.seek(ctx); err != nil {
			return Page{}, err
		}
	}
	got, err := c.get(ctx)
	if err != nil {
		return Page{}, err
	}
	if c.cfg.Gaps {
		overtaken, err := c.guard.overtakes(ctx, &got)
		if err != nil {
			return Page{}, err
		}
		if overtaken {
			c.iterator = ""
			page, err := c.attempt(ctx) // with a new iterator it is unsure, so this happens once
			if err != nil || !got.ended() || len(got.Records) > 0 || !c.confirms(&page) {
				return page, err
			}
		}
	}
	return c.accept(ctx, &got)
}

// confirms reports whether a page from a new iterator shows that the last record read is still
// there, and nothing behind it. Then an answer before it, which said that the shard has ended, has
// left no record out. Without this a closed shard whose records are as old as the retention period,
// and still there, would have no end: each answer that says so comes too late.
func (c *Cursor) confirms(page *Page) bool {
	return c.at != "" && !c.guard.unsure && !page.Ended && !page.Gap && len(page.Records) == 0
}

func (c *Cursor) call(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.cfg.CallTimeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.cfg.CallTimeout)
}

// get makes one GetRecords call. It makes no second one by itself, as the SDK's client would: the
// budget counts each call.
func (c *Cursor) get(ctx context.Context) (answer, error) {
	sent, limit, err := c.take(ctx)
	if err != nil {
		return answer{}, err
	}
	in := &kinesis.GetRecordsInput{
		ShardIterator: &c.iterator, Limit: aws.Int32(int32(limit)),
	}
	_, in.StreamARN = streamref.Target(c.cfg.Stream)
	ctx, cancel := c.call(ctx)
	defer cancel()
	c.last = sent.sent
	out, err := c.cfg.Kinesis.GetRecords(ctx, in, func(o *kinesis.Options) {
		o.Retryer = aws.NopRetryer{}
	})
	now := time.Now()
	switch {
	case err == nil:
		c.budget.answer(sent, now, len(out.Records), sizeOf(out.Records))
	case awserr.Kinesis.Of(err) == awserr.Throttled:
		c.budget.refuse(sent, now)
		return answer{}, &throttle{err}
	default:
		c.budget.fail(sent, now)
		return answer{}, err
	}
	return newAnswer(out, c.last, now), nil
}

// mostRecords is the largest number of records of an answer (AWS, "GetRecords": Limit).
const mostRecords = 10_000

// throttle is the error of a GetRecords call that came too soon.
type throttle struct{ error }

func (t *throttle) Unwrap() error { return t.error }

// take waits until a call is due, and then for room. It returns the number of records to ask for.
// While it waits for room another cursor may use the shard's budget, so it looks at that again.
func (c *Cursor) take(ctx context.Context) (call, int, error) {
	if err := retry.Wait(ctx, c.budget.wait(time.Now())); err != nil {
		return call{}, 0, err
	}
	limit := c.cfg.Limit
	if c.unused(); c.cfg.Room != nil {
		var err error
		if limit, err = c.cfg.Room(ctx); err != nil {
			return call{}, 0, &roomless{err}
		}
		c.reserved = true
	}
	if limit <= 0 || limit > mostRecords {
		limit = mostRecords
	}
	for {
		next, wait := c.budget.take(time.Now())
		if wait == 0 {
			return next, c.budget.ask(limit), nil
		}
		if err := retry.Wait(ctx, wait); err != nil {
			return call{}, 0, err
		}
	}
}

// roomless is the error of Config.Room.
type roomless struct{ error }

func (r *roomless) Unwrap() error { return r.error }

// unused gives back the room of a call without a page.
func (c *Cursor) unused() {
	if c.reserved && c.cfg.Unused != nil {
		c.cfg.Unused()
	}
	c.reserved = false
}

// sizeOf returns the bytes that count against the limits: data and partition keys.
func sizeOf(records []types.Record) (bytes int) {
	for i := range records {
		bytes += len(records[i].Data) + len(aws.ToString(records[i].PartitionKey))
	}
	return bytes
}

// accept makes the page of an answer, and goes on behind it.
func (c *Cursor) accept(ctx context.Context, got *answer) (p Page, err error) {
	p = Page{Records: got.Records, Behind: got.behind(), Ended: got.ended()}
	if p.Ended {
		if p.Children, err = shardmap.Children(got.ChildShards); err != nil {
			return Page{}, err
		}
	}
	if c.cfg.Gaps {
		if p.Gap, p.First, err = c.guard.watch(ctx, got, c.at); err != nil {
			return Page{}, err
		}
		p.Complete = c.guard.complete
	}
	c.failures, c.iterator = 0, aws.ToString(got.NextShardIterator)
	for len(p.Records) > 0 && c.read(&p.Records[0]) {
		p.Records = p.Records[1:]
	}
	if n := len(p.Records); n > 0 {
		c.at, c.included = sequenceOf(&p.Records[n-1]), false
	}
	return p, nil
}

// read reports whether a page had the record before, as the first record of a new iterator.
func (c *Cursor) read(r *types.Record) bool {
	order := sequenceOf(r).Compare(c.at)
	return order < 0 || order == 0 && !c.included
}

func sequenceOf(r *types.Record) runnel.SequenceNumber {
	return runnel.SequenceNumber(aws.ToString(r.SequenceNumber))
}

// seek makes an iterator that begins with the last record read. If that record does not come, it
// and the records after it have been removed.
func (c *Cursor) seek(ctx context.Context) error {
	calling, cancel := c.call(ctx)
	defer cancel()
	asked := time.Now()
	out, err := c.cfg.Kinesis.GetShardIterator(calling, c.input())
	if err != nil {
		return err
	}
	// If this iterator is lost before a record comes, the next one begins at the same moment, by
	// the stream's clock: ours may be hours off.
	c.from = c.from.Pin(awsclient.Date(asked, out.ResultMetadata))
	if c.cfg.Checked {
		// The call named the stream, and an iterator belongs to the stream that had the name at
		// that time.
		if err := c.cfg.Of.Same(ctx); err != nil {
			return err
		}
	}
	c.guard.unsure = true
	c.iterator = aws.ToString(out.ShardIterator)
	return nil
}

func (c *Cursor) input() *kinesis.GetShardIteratorInput {
	in := &kinesis.GetShardIteratorInput{ShardId: aws.String(string(c.cfg.Shard))}
	in.StreamName, in.StreamARN = streamref.Target(c.cfg.Stream)
	switch {
	case c.at != "":
		in.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		in.StartingSequenceNumber = aws.String(string(c.at))
	case !c.from.Time().IsZero():
		in.ShardIteratorType = types.ShardIteratorTypeAtTimestamp
		in.Timestamp = aws.Time(c.from.Time())
	default:
		in.ShardIteratorType = types.ShardIteratorType(c.from.Word())
	}
	return in
}
