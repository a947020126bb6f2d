package consumer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
)

// sized returns records that count so many bytes each.
func sized(n int, bytes int64) []types.Record {
	records := make([]types.Record, n)
	for i := range records {
		records[i] = types.Record{
			PartitionKey: aws.String("key"), Data: make([]byte, bytes-readOverhead),
		}
	}
	return records
}

func (a *account) mustRoom(t *testing.T) int {
	t.Helper()
	n, err := a.room(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The first read asks for few records, since their size is not known. The next ones ask for as many
// as half a share holds.
func TestBufferAsksForWhatHasRoom(t *testing.T) {
	few, b := &buffer{limit: 64 << 20}, &buffer{limit: 8 << 20 * bodiesPart / (bodiesPart - 1)}
	if n := few.add(10_000).mustRoom(t); n != 10_000 {
		t.Errorf("the first read asks for %d records, though an answer of any size has room", n)
	}
	a := b.add(10_000)
	if n := a.mustRoom(t); n != 4 {
		t.Errorf("the first read asks for %d records, which may have 1 MiB each", n)
	}
	a.read(sized(4, 1<<10))
	for _, want := range []int{512, 1024, 2048, 4096, 0} {
		a.free(a.held)
		if want == 0 { // half a share is 4 MiB
			want = 4 << 20 / (1<<10 + 1)
		}
		n := a.mustRoom(t)
		if n < want*99/100 || n > want {
			t.Errorf("a full read is followed by one of %d records, want about %d", n, want)
		}
		a.read(sized(n, 1<<10))
	}
	a.free(a.held)
	full := a.mustRoom(t)
	a.read(sized(3, 1<<10))
	a.free(a.held)
	if n := a.mustRoom(t); n > full*6/10 {
		t.Errorf("a read that was not full is followed by one of %d records", n)
	}
}

// A shard that frees nothing holds its share at most. The others read on.
func TestBufferOfASlowShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, shards = 16 << 20, 4
		b := &buffer{limit: limit}
		var slow, quick *account
		for range shards - 1 {
			quick = b.add(10_000)
		}
		slow = b.add(10_000)
		reads := 0
		go func() {
			for {
				n, err := slow.room(t.Context())
				if err != nil {
					return
				}
				slow.read(sized(n, 1<<10))
				reads++
			}
		}()
		synctest.Wait()
		if slow.held > limit/shards || slow.held < limit/shards/2 {
			t.Errorf("the slow shard holds %d bytes of %d", slow.held, limit/shards)
		}
		before := reads
		for range 100 {
			n := quick.mustRoom(t)
			quick.read(sized(n, 1<<10))
			if quick.held > limit/shards {
				t.Fatalf("the quick shard holds %d bytes", quick.held)
			}
			quick.free(quick.held)
		}
		slow.free(1 << 20)
		synctest.Wait()
		if reads == before {
			t.Error("the slow shard does not read on after it has freed memory")
		}
	})
}

// A record that is larger than a share, or than the buffer, is read nevertheless, by itself.
func TestBufferOfLargeRecords(t *testing.T) {
	b := &buffer{limit: 1 << 20}
	var accounts []*account
	for range 4 {
		accounts = append(accounts, b.add(10_000))
	}
	for _, a := range accounts {
		for range 3 {
			if n := a.mustRoom(t); n != 1 {
				t.Fatalf("%d records", n)
			}
			a.read(sized(1, 2<<20))
			a.free(2 << 20)
		}
	}
	if b.used != 0 {
		t.Errorf("%d bytes are used in the end", b.used)
	}
}

// An answer that brings nothing, an answer that is discarded, and an end of the wait give the room
// back.
func TestBufferGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &buffer{limit: 1 << 20}
		a, other := b.add(10_000), b.add(10_000)
		a.mustRoom(t)
		a.unused()
		a.mustRoom(t)
		a.mustRoom(t) // the first answer was discarded
		a.read(sized(1, 1<<20))
		ctx, cancel := context.WithCancelCause(t.Context())
		waited := make(chan error)
		go func() {
			_, err := a.room(ctx)
			waited <- err
		}()
		synctest.Wait()
		gone := errors.New("gone")
		cancel(gone)
		if err := <-waited; !errors.Is(err, gone) {
			t.Error(err)
		}
		if b.used != 1<<20 || len(b.queue) != 0 {
			t.Errorf("%d bytes are used, and %d shards wait", b.used, len(b.queue))
		}
		a.close()
		a.free(1 << 20) // a handler that returns late
		if other.mustRoom(t); b.used != other.reserved {
			t.Errorf("%d bytes are used in the end", b.used)
		}
	})
}

// A shard that waits for a large read is served before those that asked later, and only a quick
// handler gets a read beyond its share.
func TestBufferLends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, shards = 64 << 20, 500
		b := &buffer{limit: limit}
		known := func(window int64) *account {
			a := b.add(10_000)
			a.lends, a.size, a.window = true, 1<<10, window
			return a
		}
		large, small, other := known(2<<20), known(16<<10), known(16<<10)
		for range shards {
			b.add(10_000)
		}
		for _, c := range []struct {
			took time.Duration
			want int64
		}{{quickRead, b.share() / 2}, {quickRead - 1, 2 << 20}} {
			large.settle(c.took)
			if n := int64(large.mustRoom(t)) << 10; n > c.want || n < c.want/2 {
				t.Errorf("after %v a read has %d bytes, want %d", c.took, n, c.want)
			}
			large.unused()
		}
		other.held, b.used, b.loans = 3<<20, b.size()-(64<<10), 1
		got := make(chan *account, 2)
		for _, a := range []*account{large, small} {
			go func() {
				a.mustRoom(t)
				got <- a
			}()
			synctest.Wait()
		}
		if len(got) != 0 {
			t.Error("a shard passes one that waits")
		}
		other.free(3 << 20)
		synctest.Wait()
		if len(got) != 2 {
			t.Errorf("%d of two shards have room", len(got))
		}
	})
}
