package producer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
)

// soak is how many times as much the random tests do: RUNNEL_SOAK, 1 if it is not set.
func soak(tb testing.TB) int {
	n := 1
	if text := os.Getenv("RUNNEL_SOAK"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			tb.Fatalf("RUNNEL_SOAK is %q: want an integer from 1 on", text)
		}
	}
	return n
}

// world is a stream as a producer can meet it: each record of each call is stored or not, is
// answered or not, and what has no answer may be stored now, never, or at any later moment.
type world struct {
	*rapid.T
	core   *core
	now    time.Time
	calls  []*call              // in flight
	late   []*entry             // to be stored at some later moment, once each
	stream map[laneKey][]uint64 // what is stored, per lane in the order of the stream
	ends   map[uint64]Result    // by number
	taken  []*entry
	last   map[laneKey]uint64 // the last record of a lane with a result
	doubts int                // attempts without an answer

	through, flushed int // what the flush waits for, and how often it was told
}

func newWorld(t *rapid.T, l limits) *world {
	return &world{
		T: t, core: newCore("s", l, rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))),
		now: time.Unix(0, 0), stream: map[laneKey][]uint64{}, ends: map[uint64]Result{},
		last: map[laneKey]uint64{},
	}
}

func keyOf(e *entry) laneKey { return laneKey{e.record.PartitionKey, e.record.ExplicitHashKey} }

func (w *world) store(e *entry) {
	w.stream[keyOf(e)] = append(w.stream[keyOf(e)], e.number)
}

func (w *world) put() {
	// Few keys with much, and many with little.
	n := rapid.SampledFrom([]int{2, 5, 40}).Draw(w.T, "spread")
	record := runnel.Record{
		PartitionKey: fmt.Sprint("k", rapid.IntRange(1, n).Draw(w.T, "key")),
		Data:         make([]byte, rapid.IntRange(0, 60).Draw(w.T, "size")),
	}
	if rapid.IntRange(0, 9).Draw(w.T, "hash") == 0 {
		record.ExplicitHashKey = "7"
	}
	if rapid.IntRange(0, 19).Draw(w.T, "bad") == 0 {
		record.Data = bad
	}
	e := &entry{record: record}
	w.core.put(w.now, e)
	w.taken = append(w.taken, e)
}

// bad is data that the stream refuses a whole call for.
var bad = []byte("bad")

func isBad(e *entry) bool { return string(e.record.Data) == string(bad) }

// launch makes the calls that can be made, and checks the rules that each must keep.
func (w *world) launch() {
	l := w.core.limits
	for made := w.core.launch(w.now); made != nil; made = w.core.launch(w.now) {
		w.calls = append(w.calls, made)
		if n := len(made.entries); n == 0 || n > l.records {
			w.Fatalf("a call of %d records, the limit is %d", n, l.records)
		}
		bytes, last := 0, uint64(0)
		for _, e := range made.entries {
			if e.number < last && l.giveUp == 0 {
				w.Fatalf("record %d goes before %d", last, e.number)
			}
			bytes, last = bytes+e.size(), e.number
		}
		for _, left := range w.core.lanes {
			if left.state == ready && left.head() != nil && left.head().number < last && l.giveUp == 0 {
				w.Fatalf("record %d goes before %d, which was ready", last, left.head().number)
			}
		}
		if bytes != made.bytes || (bytes > l.bytes && len(made.entries) > 1) {
			w.Fatalf("a call of %d bytes (it says %d), the limit is %d", bytes, made.bytes, l.bytes)
		}
	}
	if len(w.calls) > l.calls {
		w.Fatalf("%d calls in flight, the limit is %d", len(w.calls), l.calls)
	}
	flying := map[laneKey]uint64{}
	for _, c := range w.calls {
		for _, e := range c.entries {
			if other, twice := flying[keyOf(e)]; twice {
				w.Fatalf("records %d and %d of one lane are in flight", other, e.number)
			}
			flying[keyOf(e)] = e.number
		}
	}
}

// land gives one of the calls in flight an outcome. calm: everything works.
func (w *world) land(calm bool) {
	if len(w.calls) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.calls)-1).Draw(w.T, "call")
	made := w.calls[i]
	w.calls = slices.Delete(w.calls, i, i+1)
	o := outcome{each: make([]verdict, len(made.entries))}
	whole := rapid.SampledFrom([]fate{stored, unknown, unknown, notSent, throttled, failed}).
		Draw(w.T, "whole")
	if calm || rapid.IntRange(0, 2).Draw(w.T, "single") > 0 {
		whole = stored
	}
	if whole == stored && slices.ContainsFunc(made.entries, isBad) {
		whole = suspect
	}
	if whole != stored {
		o = outcome{all: verdict{fate: whole, err: errors.New("as a whole")}}
	}
	for i, e := range made.entries {
		f := whole
		if whole == stored && !calm {
			f = rapid.SampledFrom([]fate{stored, stored, stored, throttled, failed, unknown}).
				Draw(w.T, "fate")
		}
		w.suffer(e, f)
		if o.each != nil {
			o.each[i] = verdict{fate: f, shard: "s", sequence: "1", err: errors.New("alone")}
		}
	}
	w.core.land(w.now, made, o)
}

// suffer stores what a record's fate stores.
func (w *world) suffer(e *entry, f fate) {
	switch f {
	case stored:
		w.store(e)
	case unknown:
		w.doubts++
		switch rapid.SampledFrom([]string{"now", "never", "late"}).Draw(w.T, "unknown") {
		case "now":
			w.store(e)
		case "late":
			w.late = append(w.late, e)
		}
	}
}

func (w *world) commitLate() {
	if len(w.late) > 0 {
		i := rapid.IntRange(0, len(w.late)-1).Draw(w.T, "late")
		w.store(w.late[i])
		w.late = slices.Delete(w.late, i, i+1)
	}
}

// collect takes the results, which come once for each record and in the order of each lane.
func (w *world) collect() {
	for _, s := range w.core.settled {
		if s.entry == nil {
			if w.flushed++; len(w.ends) < w.through {
				w.Fatalf("flushed with %d results, want %d", len(w.ends), w.through)
			}
			continue
		}
		number := s.entry.number
		if _, twice := w.ends[number]; twice {
			w.Fatalf("record %d has two results", number)
		}
		if last := w.last[keyOf(s.entry)]; last > number {
			w.Fatalf("the result of record %d comes after that of %d of its lane", number, last)
		}
		w.last[keyOf(s.entry)], w.ends[number] = number, s.result
	}
	w.core.settled = nil
}

func (w *world) step(calm bool) {
	w.core.tick(w.now)
	w.launch()
	w.land(calm)
	w.collect()
}

// run is a random history, and after it calm until everything has its result.
func (w *world) run() {
	for range rapid.IntRange(1, 300).Draw(w.T, "steps") {
		switch rapid.IntRange(0, 9).Draw(w.T, "what") {
		case 0, 1, 2, 3:
			w.put()
		case 4, 5, 6, 7:
			w.step(false)
		case 8:
			w.commitLate()
		case 9:
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(w.T, "ms")) *
				time.Millisecond)
		}
	}
	w.through = len(w.taken)
	w.core.flush(make(chan struct{}))
	// Each record needs a step and some need a wait: far more than that is a producer that
	// does not get on.
	for i := 0; len(w.ends) < len(w.taken); i++ {
		if i > 40*len(w.taken)+100 {
			w.Fatalf("%d of %d records have a result", len(w.ends), len(w.taken))
		}
		w.core.tick(w.now)
		w.launch()
		w.collect()
		if len(w.calls) == 0 && len(w.ends) < len(w.taken) {
			if at, ok := w.core.wake(); !ok {
				w.Fatalf("%d records wait, and nothing will wake the core",
					len(w.taken)-len(w.ends))
			} else if at.After(w.now) {
				w.now = at
			}
			continue
		}
		w.land(true)
		w.collect()
	}
	w.collect()
	// A lane that was emptied by giving up goes when its turn comes.
	w.now = w.now.Add(time.Minute)
	w.core.tick(w.now)
	if made := w.core.launch(w.now); made != nil {
		w.Fatalf("a call of %d records, and none is left", len(made.entries))
	}
	if w.flushed != 1 {
		w.Fatalf("the flush was told %d times", w.flushed)
	}
	for len(w.late) > 0 {
		w.commitLate()
	}
}

// check holds the stream against the results.
func (w *world) check() {
	doubles, unknown := 0, 0
	copies := map[uint64]int{}
	for key, stored := range w.stream {
		newest := uint64(0)
		for _, number := range stored {
			copies[number]++
			if copies[number] > 1 || w.ends[number].Err != nil {
				continue
			}
			if number < newest {
				w.Fatalf("%v: record %d is first read after %d", key, number, newest)
			}
			newest = number
		}
	}
	for _, e := range w.taken {
		r, n := w.ends[e.number], copies[e.number]
		least, most := 1, 1+r.Unknown
		if r.Err != nil {
			least, most = 0, r.Unknown
			if got := errors.Is(r.Err, ErrUnknown); got != (r.Unknown > 0) {
				w.Fatalf("record %d: %d unknown attempts, and %v", e.number, r.Unknown, r.Err)
			}
		}
		if n < least || n > most {
			w.Fatalf("record %d is in the stream %d times, its result is %+v", e.number, n, r)
		}
		doubles += max(n-1, 0)
		unknown += r.Unknown
	}
	c := w.core
	if doubles > int(c.counts.unknown) || w.doubts != int(c.counts.unknown) || unknown != w.doubts {
		w.Fatalf("%d doubles, %d attempts without an answer, the core counts %d, the results %d",
			doubles, w.doubts, c.counts.unknown, unknown)
	}
	if len(c.lanes) != 0 || c.calls != 0 || c.flying != 0 || c.ages.oldest != nil || c.ready.count != 0 ||
		c.held.Len() != 0 || len(c.flushes) != 0 {
		w.Fatalf("something is left: %d lanes, %d calls, %d ready, %d held, %d flushes",
			len(c.lanes), c.calls, c.ready.count, c.held.Len(), len(c.flushes))
	}
	if total := c.counts.delivered + c.counts.undelivered; total != uint64(len(w.taken)) {
		w.Fatalf("%d results counted for %d records", total, len(w.taken))
	}
}

func randomLimits(t *rapid.T) limits {
	l := Config{}.withDefaults().limits()
	l.calls = rapid.IntRange(1, 4).Draw(t, "calls")
	l.records = rapid.SampledFrom([]int{1, 2, 7, 500}).Draw(t, "records")
	l.bytes = rapid.SampledFrom([]int{64, 100, 10_000}).Draw(t, "bytes")
	l.linger = rapid.SampledFrom([]time.Duration{0, 0, 100 * time.Millisecond}).Draw(t, "linger")
	return l
}

// Nothing is lost, first occurrences are in the order of put, and there are no more doubles
// than attempts without an answer, whatever the stream does.
func TestOrderUnderFaults(t *testing.T) {
	for range soak(t) {
		rapid.Check(t, func(t *rapid.T) {
			w := newWorld(t, randomLimits(t))
			w.run()
			w.check()
			for number, r := range w.ends {
				e := w.taken[number-1]
				if refused := errors.Is(r.Err, ErrRefused); refused != isBad(e) ||
					(r.Err != nil && !refused) {
					t.Fatalf("record %d, bad: %v, has the result %+v", number, isBad(e), r)
				}
			}
		})
	}
}

// The same where records are given up: what is delivered is in order, and what is not says
// truly whether it may be in the stream.
func TestOrderUnderGivingUp(t *testing.T) {
	for range soak(t) {
		rapid.Check(t, func(t *rapid.T) {
			l := randomLimits(t)
			l.giveUp = time.Duration(rapid.IntRange(1, 4000).Draw(t, "giveUp")) * time.Millisecond
			w := newWorld(t, l)
			w.run()
			w.check()
		})
	}
}

// A Close that runs out of time reports every record, whatever state it is in.
func TestAbandonReportsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, randomLimits(t))
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "put") {
				w.put()
			} else {
				w.step(false)
			}
		}
		for _, made := range w.calls { // the calls are cut
			for _, e := range made.entries {
				w.suffer(e, unknown)
			}
			w.core.land(w.now, made, outcome{all: verdict{fate: unknown, err: ErrClosed}})
		}
		w.collect()
		records, _ := w.core.unsettled()
		if records+len(w.ends) != len(w.taken) {
			t.Fatalf("%d unsettled and %d results of %d", records, len(w.ends), len(w.taken))
		}
		w.core.abandon()
		w.collect()
		for len(w.late) > 0 {
			w.commitLate()
		}
		w.calls, w.core.calls, w.core.flying = nil, 0, 0
		w.check()
	})
}

// Among the records that can be sent, the oldest go first; so a cold key's only record waits
// for no more than the distinct keys that were there before it, a call for each 500 of them,
// however much the hot ones have.
func TestFairness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Config{}.withDefaults().limits()
		l.calls, l.records = 1, rapid.IntRange(1, 5).Draw(t, "records")
		w := newWorld(t, l)
		hot := rapid.IntRange(1, l.records).Draw(t, "hot")
		put := func(key string) *entry {
			e := &entry{record: runnel.Record{PartitionKey: key}}
			w.core.put(w.now, e)
			w.taken = append(w.taken, e)
			return e
		}
		for i := range 20 * hot {
			put(fmt.Sprint("hot", i%hot))
		}
		others := rapid.IntRange(0, 20).Draw(t, "others")
		for i := range others {
			put(fmt.Sprint("other", i))
		}
		cold := put("cold")
		put("newer")
		// A call has room for one of each hot key that is older, and for others.
		room := l.records - hot
		calls := 20 + others/l.records + 1
		if room > 0 {
			calls = others/room + 1
		}
		for range calls {
			w.land(true)
			w.launch()
			made := w.calls[0]
			if slices.Contains(made.entries, cold) {
				return
			}
			for _, e := range made.entries {
				if e.number > cold.number {
					t.Fatalf("record %d goes before %d", e.number, cold.number)
				}
			}
		}
		t.Fatalf("%d hot keys, %d others: the cold one is not served after %d calls of %d",
			hot, others, calls, l.records)
	})
}

func TestBackoff(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 100; n++ {
		most := 5 * time.Second
		if n <= 7 {
			most = min(most, 50*time.Millisecond<<(n-1))
		}
		seen := map[time.Duration]bool{}
		for range 100 {
			d := backoff(n, 50*time.Millisecond, 5*time.Second, random)
			if d < most/2 || d > most {
				t.Fatalf("backoff(%d) = %v, want %v to %v", n, d, most/2, most)
			}
			seen[d] = true
		}
		if len(seen) < 50 {
			t.Fatalf("backoff(%d) is not spread: %d values in 100", n, len(seen))
		}
	}
}
