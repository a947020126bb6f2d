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
	most                  int64 // bytes in use at once
	slowest               int64 // bytes that a slow shard held at its second page
}

// run returns when the quick shards have handled everything, and how long that took.
func (f *fleetOfReaders) run(t *testing.T) time.Duration {
	start := time.Now()
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
	took := time.Since(start)
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
	for pages := 0; handled < f.records; pages++ {
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
		f.most = max(f.most, f.used)
		if slow && pages > 0 {
			f.slowest = max(f.slowest, r.account.held-f.share())
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

// A thousand shards with a backlog take turns with large reads, whether handlers of some are slow or
// not.
func TestBufferTakesTurns(t *testing.T) {
	for _, slow := range []int{0, 40, 999} {
		t.Run(fmt.Sprintf("%d slow", slow), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleetOfReaders{
					buffer: &buffer{limit: 16 << 20}, shards: 1000, slow: slow, records: 500,
					bytes: 1 << 10,
				}
				took := f.run(t)
				t.Logf("%v, %d reads, at most %d bytes", took, f.reads.Load(), f.most)
			})
		})
	}
}

var _ = types.Record{}
