package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
)

// roomModel is a model of callers and records in a room.
type roomModel struct {
	*rapid.T
	room                    *room
	records, bytes, largest int
	held                    [groups][]int // the sizes of the records in the room
	waiting                 []*waiter     // in the order of their calls
}

func newRoomModel(t *rapid.T) *roomModel {
	c := &roomModel{
		T:       t,
		records: rapid.SampledFrom([]int{1, 5, 31, 32, 100, 1000}).Draw(t, "records"),
		largest: rapid.IntRange(1, 1000).Draw(t, "largest"),
	}
	c.bytes = c.largest * rapid.SampledFrom([]int{1, 2, 10, 50}).Draw(t, "times")
	c.bytes += rapid.IntRange(0, c.largest).Draw(t, "more")
	c.room = newRoom(c.records, c.bytes, c.largest)
	trouble := rapid.Bool().Draw(t, "trouble")
	c.room.troubled = func(group int) bool { return trouble && group%2 == 1 }
	return c
}

func (c *roomModel) enter(group, bytes int) {
	reserved := c.below(group, bytes)
	w := c.room.take(group, bytes)
	if w == nil {
		c.held[group] = append(c.held[group], bytes)
		for _, earlier := range c.waiting {
			if earlier.group == group && earlier.place != nil {
				c.Fatalf("a record of group %d goes before one that waits", group)
			}
		}
	} else {
		c.waiting = append(c.waiting, w)
		if first := !slices.ContainsFunc(c.waiting[:len(c.waiting)-1], func(earlier *waiter) bool {
			return earlier.group == group
		}); first && reserved {
			c.Fatalf("group %d holds less than its reserve, and waits", group)
		}
	}
	c.check()
}

// below reports whether a record leaves its group within its reserve: a 32nd of the buffer, or less
// if the largest record needs more.
func (c *roomModel) below(group, bytes int) bool {
	sum := bytes
	for _, size := range c.held[group] {
		sum += size
	}
	reserve := min(c.bytes/32, (c.bytes-c.largest)/15)
	return len(c.held[group]) < min(c.records/32, (c.records-1)/15) && sum <= reserve
}

// leave removes one record of a group.
func (c *roomModel) leave(group int) {
	if n := len(c.held[group]); n > 0 {
		i := rapid.IntRange(0, n-1).Draw(c.T, "record")
		c.room.release(group, 1, c.held[group][i])
		c.held[group] = slices.Delete(c.held[group], i, i+1)
		c.room.serve()
		c.check()
	}
}

// withdraw ends the wait of a caller, which may have been granted its room just before.
func (c *roomModel) withdraw() {
	if n := len(c.waiting); n > 0 {
		w := c.waiting[rapid.IntRange(0, n-1).Draw(c.T, "waiter")]
		c.waiting = slices.DeleteFunc(c.waiting, func(o *waiter) bool { return o == w })
		c.room.withdraw(w)
		c.check()
	}
}

// check collects the waiters that were granted room, and compares the room's sums with the records.
func (c *roomModel) check() {
	left := c.room.waiters
	if c.room.serve(); c.room.waiters < left {
		c.Fatalf("%d callers wait, and there was room for %d of them", left, left-c.room.waiters)
	}
	waits := [groups]bool{}
	c.waiting = slices.DeleteFunc(c.waiting, func(w *waiter) bool {
		select {
		case <-w.granted:
			if waits[w.group] {
				c.Fatalf("group %d: a later caller is served first", w.group)
			}
			c.held[w.group] = append(c.held[w.group], w.bytes)
			return true
		default:
			waits[w.group] = true
			return false
		}
	})
	records, bytes := 0, 0
	for g, held := range c.held {
		sum := 0
		for _, size := range held {
			sum += size
		}
		if c.room.records.used[g] != len(held) || c.room.bytes.used[g] != sum {
			c.Fatalf("group %d holds %d records and %d bytes, the room has %d and %d", g, len(held),
				sum, c.room.records.used[g], c.room.bytes.used[g])
		}
		records, bytes = records+len(held), bytes+sum
	}
	if records > c.records || bytes > c.bytes {
		c.Fatalf("%d records and %d bytes, the limits are %d and %d", records, bytes, c.records, c.bytes)
	}
	if c.room.waiters != len(c.waiting) {
		c.Fatalf("%d callers wait, the room has %d", len(c.waiting), c.room.waiters)
	}
}

// The room is never overdrawn. Callers of a group are served in order, and do not wait while the
// group is within its reserve. When all records have left, no caller waits and the sums are 0.
func TestRoom(t *testing.T) {
	for range soak(t) {
		rapid.Check(t, func(t *rapid.T) {
			c := newRoomModel(t)
			for range rapid.IntRange(1, 300).Draw(t, "steps") {
				group := rapid.SampledFrom([]int{0, 0, 0, 1, 7, 15}).Draw(t, "group")
				switch rapid.IntRange(0, 7).Draw(t, "what") {
				case 0, 1, 2, 3:
					size := rapid.IntRange(1, c.largest).Draw(t, "size")
					if rapid.Bool().Draw(t, "small") {
						size = 1 + size/50
					}
					c.enter(group, size)
				case 4, 5, 6:
					c.leave(group)
				case 7:
					c.withdraw()
				}
			}
			for left := true; left; {
				left = false
				for g := range c.held {
					left = left || len(c.held[g]) > 0
					c.leave(g)
				}
			}
			if len(c.waiting) > 0 || c.room.records.pooled != 0 || c.room.bytes.pooled != 0 {
				t.Fatalf("the room is empty, and %d callers wait; drawn are %d records and %d bytes",
					len(c.waiting), c.room.records.pooled, c.room.bytes.pooled)
			}
		})
	}
}

// A caller that waits for the pool is served although smaller records keep coming: when the records
// that were there before it have gone, it gets its room.
func TestNoCallerStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newRoomModel(t)
		for range rapid.IntRange(0, 500).Draw(t, "before") {
			group := (4 + rapid.IntRange(0, 14).Draw(t, "group")) % groups // not 3
			c.enter(group, 1+rapid.IntRange(0, c.largest-1).Draw(t, "size")/20)
			if len(c.waiting) > 0 {
				c.withdraw()
			}
		}
		w := c.room.take(3, c.largest)
		if w == nil {
			return
		}
		c.waiting = append(c.waiting, w)
		before := c.held
		for g := range before {
			for range before[g] {
				c.room.release(g, 1, c.held[g][0]) // the oldest
				c.held[g] = c.held[g][1:]
				c.room.serve()
				c.check()
				if w.place == nil {
					return
				}
				for i := range 32 { // as many as there is room for, in other groups
					other := (4 + i) % groups
					if other == 3 {
						continue
					}
					if c.enter(other, 1); len(c.waiting) > 1 {
						last := c.waiting[len(c.waiting)-1]
						c.waiting = c.waiting[:1]
						c.room.withdraw(last)
						c.check()
					}
				}
			}
		}
		t.Fatalf("the caller still waits for %d bytes, beside %v", c.largest, c.held)
	})
}

// A group alone can use all except the reserves of the others. A group that delivers nothing leaves
// the pool to those that deliver.
func TestRoomOfAGroup(t *testing.T) {
	fill := func(r *room, group int) (records int) {
		for r.waiting[group].Len() == 0 {
			if r.take(group, 1) == nil {
				records++
			}
		}
		return records
	}
	alone := newRoom(3200, 3200, 1)
	alone.troubled = func(int) bool { return true } // it has delivered nothing yet
	if n := fill(alone, 0); n != 1700 {
		t.Errorf("a group alone holds %d of 3,200 records, want 1,700", n)
	}
	if n := fill(alone, 1); n != 100 {
		t.Errorf("beside a group that holds all it may, another holds %d records, want 100", n)
	}
	busy := newRoom(3200, 3200, 1)
	busy.troubled = func(group int) bool { return group != 6 }
	for range 10_000 {
		for g := 2; g < groups; g++ {
			busy.take(g, 1)
			busy.release(g, 1, 1)
		}
	}
	// The first group draws up to a ninth of the pool of 1,600, the second a ninth of the rest.
	first, second := fill(busy, 0), fill(busy, 1)
	if first < 250 || first > 300 || second < 220 || second > first {
		t.Errorf("groups that deliver nothing hold %d and %d records", first, second)
	}
	if n := fill(busy, 5); n < 300 {
		t.Errorf("a group with a 14th of the deliveries holds %d records", n)
	}
	if n := fill(busy, 6); busy.records.pooled != busy.records.pool {
		t.Errorf("a group without trouble holds %d records, and leaves %d", n,
			busy.records.pool-busy.records.pooled)
	}
}

// A record larger than a reserve goes although another shard takes nothing and its caller has
// filled all the room that it may use.
func TestLargeRecordsBesideAFullGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharded(8)
		s.refuse = func(shard int, _ *types.PutRecordsRequestEntry) bool { return shard == 3 }
		p, ctx := s.open(t, func(c *Config) {
			c.Order, c.MaxRecordBytes, c.MaxBufferedBytes = OrderPlain, 1<<20, 6<<20
		})
		var delivered, refused atomic.Int64
		var all sync.WaitGroup
		large := make([]byte, 1<<20-100)
		keys := keysIn(s.ranges[0], "key-", 1)
		for range 20 { // this group delivers
			if err := p.PutFunc(ctx, runnel.Record{PartitionKey: keys[0], Data: large}, nil); err != nil {
				t.Fatal(err)
			}
		}
		small := keysIn(s.ranges[3], strings.Repeat("k", 200), 9000)
		all.Go(func() { putEach(t, p, ctx, small, &refused) })
		time.Sleep(time.Second)
		for range 20 {
			err := p.PutFunc(ctx, runnel.Record{PartitionKey: keys[0], Data: large}, func(r Result) {
				if r.Err == nil {
					delivered.Add(1)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if n := delivered.Load(); n != 20 {
			t.Errorf("%d of 20 large records are delivered", n)
		}
		closeRefused(t, p)
		all.Wait()
	})
}

// A stream may take records of 10 MiB, which the producer learns late. A record that fits into the
// buffer goes, although the reserves were made for records of 1 MiB and other groups hold records.
func TestLargestRecordOfASmallBuffer(t *testing.T) {
	for _, buffer := range []int{10 << 20, 12 << 20, 18 << 20} {
		synctest.Test(t, func(t *testing.T) {
			s := &stream{latency: 20 * time.Millisecond}
			p, ctx := s.openUnits(t, func(c *Config) {
				c.Reader, c.MaxBufferedBytes = &limitedReader{kib: 10 << 10}, buffer
			})
			brief, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			for i := range 20 {
				put(t, p, ctx, runnel.Record{PartitionKey: fmt.Sprint(i), Data: make([]byte, 100<<10)}, nil)
			}
			if err := p.PutFunc(brief, sized(10<<20), nil); err != nil {
				t.Errorf("a buffer of %d bytes: %v", buffer, err)
			}
			closeNow(t, p, ctx)
			r := p.mu.room
			if none := [groups]int{}; r.bytes.used != none || r.bytes.pooled != 0 {
				t.Errorf("after Close the room holds %v bytes, %d of the pool", r.bytes.used, r.bytes.pooled)
			}
		})
	}
}

// A busy key fills the buffer, and then its shard refuses everything. A record of another shard
// that is larger than its group's reserve still finds room.
func TestLargeRecordBesideARefusedBusyKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharded(2)
		var stuck atomic.Bool
		s.refuse = func(shard int, _ *types.PutRecordsRequestEntry) bool { return shard == 0 && stuck.Load() }
		p, ctx := s.open(t, func(c *Config) { c.Reader, c.Order = &limitedReader{kib: 10 << 10}, OrderPlain })
		stuck.Store(true)
		brief, cancel := context.WithTimeout(ctx, time.Minute)
		hot := keysIn(s.ranges[0], "hot-", 1)[0]
		for p.PutFunc(brief, runnel.Record{PartitionKey: hot, Data: make([]byte, 100<<10)}, nil) == nil {
		}
		cancel()
		if held := p.mu.room.bytes.pooled; held < p.mu.room.bytes.pool/2 {
			t.Fatalf("the hot key holds %d bytes of the pool", held)
		}
		brief, cancel = context.WithTimeout(ctx, time.Minute)
		defer cancel()
		cold := keysIn(s.ranges[1], "cold-", 1)[0]
		if err := p.PutFunc(brief, runnel.Record{PartitionKey: cold, Data: make([]byte, 5<<20)}, nil); err != nil {
			t.Errorf("a record of 5 MiB for another shard: %v", err)
		}
		closeRefused(t, p)
	})
}

// All callers that wait for a full group are served when there is room. A caller returns the cause
// of its context when that ends. Close wakes them all.
func TestCallersOfAFullGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Bool
		s := newSharded(1)
		s.refuse = func(int, *types.PutRecordsRequestEntry) bool { return !open.Load() }
		p, ctx := s.open(t, func(c *Config) { c.Order, c.MaxBufferedRecords = OrderPlain, 20 })
		keys := keysIn(keyspace.Uniform(16)[4], "key-", 100)
		putEach(t, p, ctx, keys[:20], &atomic.Int64{})
		var mu sync.Mutex
		var served []int
		why := errors.New("why")
		brief, cancel := context.WithCancelCause(ctx)
		var all sync.WaitGroup
		for i := range 30 {
			under := ctx
			if i%3 == 1 {
				under = brief
			}
			all.Go(func() {
				err := p.PutFunc(under, runnel.Record{PartitionKey: keys[20+i]}, nil)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					served = append(served, i)
				case under == brief && errors.Is(err, why) || errors.Is(err, ErrClosed):
				default:
					t.Errorf("Put %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		cancel(why)
		synctest.Wait()
		if p.mu.room.waiters != 20 || len(served) > 0 {
			t.Errorf("%d callers wait, and %v were served", p.mu.room.waiters, served)
		}
		if lanes := p.Stats().Lanes; lanes != 20 {
			t.Errorf("%d lanes for the 20 records that were taken", lanes)
		}
		open.Store(true)
		if err := p.Flush(ctx); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		want := []int{}
		for i := range 30 {
			if i%3 != 1 {
				want = append(want, i)
			}
		}
		slices.Sort(served) // callers that wake together return in any order
		if !slices.Equal(served, want) {
			t.Errorf("served are %v, want %v", served, want)
		}
		open.Store(false)
		putEach(t, p, ctx, keys[50:70-p.Stats().Buffered], &atomic.Int64{})
		for i := range 10 {
			all.Go(func() {
				err := p.PutFunc(ctx, runnel.Record{PartitionKey: keys[70+i]}, nil)
				if !errors.Is(err, ErrClosed) {
					t.Errorf("Put, waiting when Close came: %v", err)
				}
			})
		}
		synctest.Wait()
		closeRefused(t, p)
		all.Wait()
		if err := p.PutFunc(ctx, runnel.Record{PartitionKey: keys[80]}, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("Put after Close: %v", err)
		}
		r := p.mu.room
		if none := [groups]int{}; r.waiters != 0 || r.records.used != none || r.bytes.used != none {
			t.Errorf("after Close the room holds %d callers, %v records", r.waiters, r.records.used)
		}
	})
}

// Many callers put through a small buffer at once, and their contexts end at any moment. None is
// forgotten, and in the end the room is empty.
func TestManyCallersOfASmallBuffer(t *testing.T) {
	for range soak(t) {
		s := newSharded(4)
		s.latency = 50 * time.Microsecond
		p, ctx := s.open(t, func(c *Config) { c.Order, c.MaxBufferedRecords = OrderKey, 64 })
		var all sync.WaitGroup
		var taken, results atomic.Int64
		for i := range 32 {
			all.Go(func() {
				for n := range 300 {
					under, cancel := ctx, context.CancelFunc(func() {})
					if n%5 == 0 {
						under, cancel = context.WithTimeout(ctx, time.Duration(i)*10*time.Microsecond)
					}
					err := p.PutFunc(under, runnel.Record{PartitionKey: fmt.Sprint(i*n%40, "-key")},
						func(Result) { results.Add(1) })
					cancel()
					if err == nil {
						taken.Add(1)
					} else if n%5 > 0 {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		closeNow(t, p, ctx)
		if taken.Load() != results.Load() || p.mu.room.waiters != 0 ||
			p.mu.room.records.used != [groups]int{} {
			t.Errorf("%d taken, %d results, %+v", taken.Load(), results.Load(), p.mu.room)
		}
	}
}
