package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
)

// page is what one read of a shard brought.
type page struct {
	records  []runnel.Record
	bytes    int64
	behind   time.Duration
	caughtUp bool // nothing that was there at the worker's start is left to read
	ended    bool // nothing follows, ever
	children []shardmap.Shard
	trimmed  runnel.Position // if not Start: what followed it was removed before it was read
}

// fetcher reads one shard from a position on, one page ahead of whoever takes the pages: it
// holds the next one while the last one is being worked on, and reads no further. It tries
// again whatever fails.
type fetcher struct {
	*run
	shard  runnel.ShardID
	origin lease.Origin    // where to begin as long as nothing was read
	after  runnel.Position // the last position read
	limit  int             // records of one read
	pages  chan page

	iterator string
	anchored bool // the iterator begins at the record at after, which was read before
	pace     pace
	failures int // in a row

	cancel context.CancelFunc
	done   chan struct{}
}

// fetch starts a fetcher that reads what follows after, or from the lease's origin on.
func (r *run) fetch(ctx context.Context, held lease.Lease, after runnel.Position) *fetcher {
	f := r.newFetcher(held, after, r.cfg.MaxRecords)
	ctx, f.cancel = context.WithCancel(ctx)
	go func() {
		defer close(f.done)
		f.loop(ctx)
	}()
	return f
}

func (r *run) newFetcher(l lease.Lease, after runnel.Position, limit int) *fetcher {
	return &fetcher{
		run: r, shard: l.Key, origin: originOf(l), after: after, limit: limit,
		pages: make(chan page), done: make(chan struct{}),
		pace: pace{interval: r.cfg.PollInterval},
	}
}

// stop ends the fetcher and waits for it.
func (f *fetcher) stop() {
	f.cancel()
	<-f.done
}

// originOf returns where a shard is read from as long as nothing of it has been processed.
func originOf(l lease.Lease) lease.Origin {
	switch {
	case !l.From.IsZero():
		return lease.Origin{Word: runnel.AtTimestamp, At: l.From}
	case l.Checkpoint.Sequence == runnel.Latest:
		// Another program made the row and left no time: now is all that can be known, and
		// it is kept for the case that the iterator expires before a record comes.
		return lease.Origin{Word: runnel.Latest}
	default:
		return lease.Origin{Word: runnel.TrimHorizon}
	}
}

func (f *fetcher) loop(ctx context.Context) {
	for ctx.Err() == nil {
		p, err := f.read(ctx)
		if err != nil {
			if !f.recover(ctx, err, &p) {
				continue
			}
		}
		select {
		case <-ctx.Done():
			return
		case f.pages <- p:
		}
		if p.ended || !wait(ctx, f.pace.next(len(p.records) > 0, p.behind > 0), nil) {
			return
		}
	}
}

// recover deals with a failed read: it waits and returns false, or returns true if the shard
// itself is gone, which is its end.
func (f *fetcher) recover(ctx context.Context, err error, p *page) bool {
	if ctx.Err() != nil {
		return false
	}
	var expired *types.ExpiredIteratorException
	if errors.As(err, &expired) {
		// It happens to whoever is slow to come back: another one is as good. A server that
		// does it again and again must not be asked without a pause.
		if f.iterator = ""; f.failures > 0 {
			wait(ctx, backoff(f.failures, longestBackoff), nil)
		}
		f.failures++
		return false
	}
	if throttled(err) {
		f.failures++
		wait(ctx, max(f.pace.throttle(), backoff(f.failures, time.Second)), nil)
		return false
	}
	if notFound(err) && f.gone(ctx) {
		f.cfg.Logger.Error("the shard was removed from the stream before it was read to its end",
			"shard", f.shard, "after", f.after.String())
		*p = page{ended: true, trimmed: f.after}
		return true
	}
	f.failures++
	f.failed(f.shard, err)
	f.iterator = "" // it may be what is wrong
	wait(ctx, backoff(f.failures, longestBackoff), nil)
	return false
}

// gone reports whether the stream is there and lists other shards, and this one no more.
func (f *fetcher) gone(ctx context.Context) bool {
	shards, err := f.shards.Shards(ctx, 0)
	if err != nil || len(shards) == 0 {
		return false
	}
	for _, s := range shards {
		if s.ID == f.shard {
			return false
		}
	}
	return true
}

// read makes one GetRecords call, and the iterator for it if there is none.
func (f *fetcher) read(ctx context.Context) (page, error) {
	if f.iterator == "" {
		if err := f.seek(ctx); err != nil {
			return page{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, f.cfg.CallTimeout)
	defer cancel()
	out, err := f.cfg.Kinesis.GetRecords(ctx, &kinesis.GetRecordsInput{
		ShardIterator: aws.String(f.iterator), Limit: aws.Int32(int32(f.limit)),
	})
	if err != nil {
		return page{}, err
	}
	p := page{behind: time.Duration(aws.ToInt64(out.MillisBehindLatest)) * time.Millisecond}
	if out.MillisBehindLatest == nil && len(out.Records) > 0 {
		p.behind = time.Millisecond // not known: more may follow
	}
	if f.iterator = aws.ToString(out.NextShardIterator); f.iterator == "" {
		p.ended = true
		if p.children, err = shardmap.Children(out.ChildShards); err != nil {
			return page{}, err
		}
	}
	f.failures = 0
	f.take(out.Records, &p)
	p.caughtUp = f.once.caughtUp(f.shard, p)
	return p, nil
}

// take turns what Kinesis returned into records, drops what is at or before the position that
// was read already, and advances it. Aggregated records will be opened here, into several
// records with sub-sequence numbers: their filter is the same one.
func (f *fetcher) take(got []types.Record, p *page) {
	if f.anchored && len(got) > 0 {
		f.anchored = false
		first := runnel.SequenceNumber(aws.ToString(got[0].SequenceNumber))
		if f.after.Sequence.Compare(first) < 0 {
			p.trimmed = f.after
		}
	}
	p.records = make([]runnel.Record, 0, len(got))
	for i := range got {
		record := runnel.Record{
			PartitionKey: aws.ToString(got[i].PartitionKey),
			Data:         got[i].Data,
			ShardID:      f.shard,
			Position: runnel.Position{
				Sequence: runnel.SequenceNumber(aws.ToString(got[i].SequenceNumber)),
			},
			ArrivalTime: aws.ToTime(got[i].ApproximateArrivalTimestamp),
		}
		if !f.after.Less(record.Position) {
			continue
		}
		f.after = record.Position
		p.bytes += int64(len(record.Data))
		p.records = append(p.records, record)
	}
}

// seek makes an iterator that begins with the record at the last position, which is dropped:
// if it does not come, it and what followed have been trimmed.
func (f *fetcher) seek(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.CallTimeout)
	defer cancel()
	in := &kinesis.GetShardIteratorInput{
		StreamName: aws.String(f.cfg.Stream), ShardId: aws.String(string(f.shard)),
	}
	f.anchored = f.after.Sequence.IsNumber()
	switch {
	case f.anchored:
		in.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		in.StartingSequenceNumber = aws.String(string(f.after.Sequence))
	case f.origin.Word == runnel.AtTimestamp:
		in.ShardIteratorType = types.ShardIteratorTypeAtTimestamp
		in.Timestamp = aws.Time(f.origin.At)
	default:
		in.ShardIteratorType = types.ShardIteratorType(f.origin.Word)
	}
	asked := time.Now()
	out, err := f.cfg.Kinesis.GetShardIterator(ctx, in)
	if err != nil {
		return err
	}
	if f.origin.Word == runnel.Latest {
		f.origin = lease.Origin{Word: runnel.AtTimestamp, At: asked}
	}
	f.iterator = aws.ToString(out.ShardIterator)
	return nil
}
