package consumer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/pages"
)

// backlog is a source of numbered records of one size, which come by reads of a few milliseconds.
type backlog struct {
	of          *account
	next, count int
	bytes       int64
	reads       *atomic.Int64
}

func (b *backlog) Next(ctx context.Context) (pages.Page, error) {
	n, err := b.of.room(ctx)
	if err != nil {
		return pages.Page{}, err
	}
	b.reads.Add(1)
	time.Sleep(time.Duration(1+rand.IntN(5)) * time.Millisecond)
	n = min(n, b.count-b.next)
	records := sized(n, b.bytes)
	for i := range records {
		b.next++
		records[i].SequenceNumber = aws.String(fmt.Sprintf("%020d", b.next))
		records[i].ApproximateArrivalTimestamp = aws.Time(time.Now())
	}
	return pages.Page{Records: records, Behind: time.Second}, nil
}

// fleetOfReaders reads a backlog of each of some shards. Each page of a slow shard takes a minute.
type fleetOfReaders struct {
	*buffer
	shards, slow, records int
	bytes                 int64
	reads                 atomic.Int64
	most                  int64 // bytes in use at once, after the first turns
	start                 time.Time
}

// run returns when the quick shards have handled everything, and how long that took.
func (f *fleetOfReaders) run(t *testing.T) time.Duration {
	f.start = time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, f.shards)
	var fetchers []*fetcher
	for i := range f.shards {
		account := f.add(10_000)
		account.lends = true
		source := &backlog{of: account, count: f.records, bytes: f.bytes, reads: &f.reads}
		of := &run{cfg: Config{MaxRecords: 10_000}}
		r := of.newFetcher(source, newReading("shardId-000000000000", runnel.Start()))
		r.account = account
		r.again = func(after runnel.Position, _ time.Time) pages.Source {
			next := 0
			if _, err := fmt.Sscan(string(after.Sequence), &next); err != nil {
				t.Error(err)
			}
			again := *source
			again.next = next
			return &again
		}
		ctx, stop := context.WithCancel(ctx)
		r.cancel = stop
		go func() {
			defer close(r.done)
			r.loop(ctx)
		}()
		go f.handle(ctx, r, i < f.slow, done)
		fetchers = append(fetchers, r)
	}
	for range f.shards - f.slow {
		select {
		case <-done:
		case <-time.After(time.Hour):
			t.Fatalf("%d quick shards wait, %d bytes are used", f.shards-f.slow, f.used)
		}
	}
	took := time.Since(f.start)
	cancel()
	for _, r := range fetchers {
		r.stop()
	}
	if f.used != 0 || f.loans != 0 {
		t.Errorf("%d bytes and %d loans are left", f.used, f.loans)
	}
	return took
}

func (f *fleetOfReaders) handle(ctx context.Context, r *fetcher, slow bool, done chan struct{}) {
	handled, last := 0, ""
	for handled < f.records {
		var p page
		select {
		case p = <-r.pages:
		case <-ctx.Done():
			return
		}
		for _, record := range p.records {
			if number := string(record.Position.Sequence); number <= last {
				panic("a record came twice: " + number)
			} else {
				last = number
			}
		}
		handled += len(p.records)
		f.mu.Lock()
		if time.Since(f.start) > 3*turn {
			f.most = max(f.most, f.used)
		}
		f.mu.Unlock()
		wait := time.Millisecond
		if slow {
			wait = time.Minute
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		r.account.free(p.memory)
	}
	done <- struct{}{}
}

// Three hundred shards with a backlog take turns with large reads. Handlers that are slow neither stop
// the others nor keep more than their share.
func TestBufferTakesTurns(t *testing.T) {
	for _, c := range []struct {
		slow, records int
		took          time.Duration
	}{
		{slow: 0, records: 500, took: 5 * time.Second},
		{slow: 12, records: 500, took: 5 * time.Second},
		{slow: 150, records: 2000, took: 20 * time.Second},
		{slow: 299, records: 2000, took: 20 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d slow", c.slow), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleetOfReaders{
					buffer: &buffer{limit: 20 << 20}, shards: 300, slow: c.slow,
					records: c.records, bytes: 1 << 10,
				}
				took := f.run(t)
				t.Logf("%v, %d reads, at most %d bytes", took, f.reads.Load(), f.most)
				if n := f.reads.Load(); n > int64(c.records*f.shards/100) {
					t.Errorf("%d reads", n) // without loans a read has 17 records
				}
				if took > c.took {
					t.Errorf("the quick shards took %v", took)
				}
				if f.most > f.limit*11/10 {
					t.Errorf("%d bytes are used, of %d", f.most, f.limit)
				}
			})
		})
	}
}

// keptRead is a backlog that keeps its last answer.
type keptRead struct {
	*backlog
	records []types.Record
}

func (k *keptRead) Next(ctx context.Context) (pages.Page, error) {
	p, err := k.backlog.Next(ctx)
	k.records = p.Records
	return p, err
}

// A read of several pages keeps no page in memory that has been handed over.
func TestReadKeepsNoOpenedRecords(t *testing.T) {
	account := (&buffer{limit: 1 << 20}).add(10_000)
	source := &keptRead{backlog: &backlog{
		of: account, count: 1000, bytes: 1 << 10, reads: new(atomic.Int64),
	}}
	of := &run{cfg: Config{MaxRecords: 3}} // of a page
	f := of.newFetcher(source, newReading("shardId-000000000000", runnel.Start()))
	f.account = account
	for range 10 {
		p, err := f.read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		opened := len(source.records) - len(f.left.Records)
		for i := range source.records[:opened] {
			if source.records[i].Data != nil {
				t.Fatalf("record %d of a read is in memory, though %d are handed over", i, opened)
			}
		}
		account.free(p.memory)
		if len(f.left.Records) > 0 {
			return
		}
	}
	t.Error("no read has more than one page")
}
