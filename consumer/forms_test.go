package consumer_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
)

// each is a handler of one record, whatever the form that calls it.
type each func(ctx context.Context, r *runnel.Record) error

// form is a way to call a handler of one record.
type form struct {
	name string
	into func(do each) func(*consumer.Config)
}

// forms are the handler forms. A batch and a processor name the record that failed, and a processor
// makes a checkpoint before that, or else after each batch.
var forms = []form{
	{"Record", func(do each) func(*consumer.Config) { return do.asRecord(10) }},
	{"Handler", func(do each) func(*consumer.Config) { return do.asHandler }},
	{"Processor", func(do each) func(*consumer.Config) { return do.asProcessor }},
}

func (do each) asRecord(parallel int) func(*consumer.Config) {
	return func(c *consumer.Config) { c.Handler, c.Record, c.Parallel = nil, do, parallel }
}

func (do each) asHandler(c *consumer.Config) {
	c.Handler = func(ctx context.Context, b *consumer.Batch) error { return do.all(ctx, b) }
}

func (do each) asProcessor(c *consumer.Config) {
	c.Handler = nil
	c.NewProcessor = func(context.Context, consumer.Shard) (consumer.Processor, error) {
		return &eachProcessor{do: do}, nil
	}
}

func (do each) all(ctx context.Context, b *consumer.Batch) error {
	for i := range b.Records {
		r := &b.Records[i]
		if err := do(ctx, r); err != nil {
			return consumer.FailedAt(r, err)
		}
	}
	return nil
}

// eachProcessor is a Processor that handles one record after the other.
type eachProcessor struct{ do each }

func (p *eachProcessor) Process(
	ctx context.Context, b *consumer.Batch, c *consumer.Checkpointer,
) error {
	for i := range b.Records {
		err := p.do(ctx, &b.Records[i])
		if err == nil && i < len(b.Records)-1 {
			continue
		}
		if err != nil {
			err = consumer.FailedAt(&b.Records[i], err)
			i--
		}
		if i < 0 {
			return err
		}
		return errors.Join(err, c.Checkpoint(ctx, b.Records[i].Position))
	}
	return nil
}

func (*eachProcessor) Stop(context.Context, consumer.StopReason, *consumer.Checkpointer) error {
	return nil
}

// tally counts the records that handlers have finished, and checks their order: no first delivery
// of a record comes behind that of a later record of its key.
type tally struct {
	*fleet
	mu      sync.Mutex
	records []runnel.Record // first deliveries
	times   map[place]int   // how often each record was finished
	newest  map[string]place
}

// place is a record's place in the stream.
type place struct {
	shard runnel.ShardID
	at    runnel.Position
}

func newTally(f *fleet) *tally {
	return &tally{fleet: f, times: map[place]int{}, newest: map[string]place{}}
}

func (t *tally) note(r *runnel.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := place{r.ShardID, r.Position}
	if t.times[p]++; t.times[p] > 1 {
		return
	}
	t.records = append(t.records, *r)
	// The fake stream's numbers rise over all shards.
	if last := t.newest[r.PartitionKey]; p.at.Less(last.at) {
		t.Errorf("%s of %s in %s came behind %s of %s", p.at, r.PartitionKey, p.shard, last.at,
			last.shard)
	}
	t.newest[r.PartitionKey] = p
}

func (t *tally) handle(_ context.Context, r *runnel.Record) error {
	t.note(r)
	return nil
}

// count returns how many records were finished, and how many deliveries were repetitions.
func (t *tally) count() (records, again int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.times {
		again += n - 1
	}
	return len(t.records), again
}

func (t *tally) wantCount(records, again int) {
	t.Helper()
	if n, a := t.count(); n != records || a != again {
		t.Errorf("%d records were handled, %d again; want %d and %d", n, a, records, again)
	}
}

// awaitCount waits until so many records were finished.
func (t *tally) awaitCount(limit time.Duration, records int) {
	t.Helper()
	t.await(limit, "the records", func() bool { n, _ := t.count(); return n >= records })
}

// doing waits as a handler that works.
func doing(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// wentQuietly fails if a lease was lost, or changed its owner without consent.
func (f *fleet) wentQuietly() {
	f.Helper()
	for _, kind := range []consumer.EventKind{
		consumer.EventLeaseExpired, consumer.EventLeaseStolen, consumer.EventLeaseLost,
	} {
		if events := f.happened(kind); len(events) > 0 {
			f.Errorf("%s: %+v", kind, events)
		}
	}
}

// position returns the position of the i-th record of a shard.
func (s *fakeStream) position(shard, i int) runnel.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return runnel.Position{
		Sequence: runnel.SequenceNumber(*s.shards[shard].records[i].SequenceNumber),
	}
}
