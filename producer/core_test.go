package producer

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
)

// soak returns a factor for the length of the random tests: RUNNEL_SOAK, or 1 if it is not set.
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

// putAlone calls put with the record's lane, for tests without a buffer.
func (c *core) putAlone(now time.Time, e *entry) {
	c.packing.examine(e)
	l, known := c.seek(e)
	if !known {
		e.makeHash()
		l, _ = c.seek(e)
	}
	c.put(now, e, l)
}

// launchSealed calls launch and seals the call. The sealed sizes must be those that launch has
// planned; a parcel of several units may be smaller.
func (c *core) launchSealed(t interface{ Fatalf(string, ...any) }, now time.Time) *call {
	made := c.launch(now)
	if made == nil {
		return nil
	}
	planned := slices.Clone(made.parcels)
	made.seal(c.packing, new(sealer))
	for i, p := range planned {
		size, units := made.parcels[i].size, len(p.lanes)
		if size > p.size || size < p.size && c.limits.order != OrderShard {
			t.Fatalf("a parcel of %d units has %d bytes, launch planned %d", units, size, p.size)
		}
	}
	return made
}

func randomLimits(t *rapid.T) limits {
	order := rapid.SampledFrom([]Order{OrderKey, OrderKey, OrderPlain, OrderNone, OrderShard, OrderShard}).Draw(t, "order")
	l := Config{Order: order}.withDefaults().limits()
	l.calls = rapid.IntRange(1, 4).Draw(t, "calls")
	l.records = rapid.SampledFrom([]int{1, 2, 7, 500}).Draw(t, "records")
	l.bytes = rapid.SampledFrom([]int{64, 400, 10_000}).Draw(t, "bytes")
	l.linger = rapid.SampledFrom([]time.Duration{0, 0, 100 * time.Millisecond}).Draw(t, "linger")
	l.unit = rapid.SampledFrom([]int{1, 200, 10_000}).Draw(t, "unit")
	l.window = rapid.SampledFrom([]uint64{1, 3, aggregate.Window}).Draw(t, "window")
	l.horizon = rapid.SampledFrom([]time.Duration{
		500 * time.Millisecond, 3 * time.Second, aggregate.H,
	}).Draw(t, "horizon")
	l.reads = true
	return l
}

// Whatever the stream does, no record is lost, first occurrences are in the order of put, and there
// are no more duplicates than attempts without an answer. Behind the filter there are no
// duplicates.
func TestOrderUnderFaults(t *testing.T) {
	for range soak(t) {
		rapid.Check(t, func(t *rapid.T) {
			w := newWorld(t, randomLimits(t))
			w.run()
			w.check()
			w.checkRefused()
		})
	}
}

// checkRefused checks that only the invalid records were not delivered.
func (w *world) checkRefused() {
	for mark, r := range w.ends {
		bad := isBad(w.records[mark])
		if refused := errors.Is(r.Err, ErrRefused); refused && !bad && r.Unknown == 0 ||
			r.Err == nil && bad || r.Err != nil && !refused {
			w.Fatalf("record %d, bad: %v, has the result %+v", mark, bad, r)
		}
	}
}

// With GiveUpAfter, the delivered records are in order, and each undelivered result says correctly
// whether the record may be in the stream. A record that was given up and is stored late comes in
// order, or the filter drops it.
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

// Without the right to read, a unit that is unknown for longer than the horizon is reported as
// unresolved.
func TestOrderWithoutReading(t *testing.T) {
	for range soak(t) {
		rapid.Check(t, func(t *rapid.T) {
			l := randomLimits(t)
			if l.order.byShard() {
				t.Skip("a producer that packs has a reader")
			}
			l.reads = false
			w := newWorld(t, l)
			w.run()
			w.check()
			for mark, r := range w.ends {
				if errors.Is(r.Err, ErrUnresolved) && !errors.Is(r.Err, ErrMaybeStored) {
					t.Fatalf("record %d: %v", mark, r.Err)
				}
			}
		})
	}
}

// With a journal that sometimes fails, each record is delivered exactly once and in order across
// crashes.
func TestExactlyOnceOverCrashes(t *testing.T) {
	for range soak(t) {
		rapid.Check(t, func(t *rapid.T) {
			l := randomLimits(t)
			if !l.order.units() {
				t.Skip("no units")
			}
			l.journal = true
			w := newWorld(t, l)
			w.crashable = true
			w.run()
			w.check()
			w.checkRefused()
		})
	}
}

// A Close that runs out of time reports every record, in whatever state it is.
func TestAbandonReportsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, randomLimits(t))
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				w.put()
			case 2, 3:
				w.step(false)
			case 4:
				w.advance(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
			}
		}
		for _, made := range w.calls { // Close cancels the calls
			for _, e := range entriesOf(made) {
				w.applyFate(made, e, unknown)
			}
			w.core.land(w.now, made, outcome{all: verdict{fate: unknown, err: ErrClosed}})
		}
		w.collect()
		records, doubtful := w.core.ledger.unsettled()
		if records+len(w.ends) != len(w.records)-1 {
			t.Fatalf("%d unsettled and %d results of %d", records, len(w.ends), len(w.records)-1)
		}
		before := len(w.ends)
		w.core.abandon(ErrClosed)
		w.collect()
		said := 0
		for _, r := range w.ends {
			if errors.Is(r.Err, ErrClosed) && errors.Is(r.Err, ErrMaybeStored) {
				said++
			}
		}
		if said != doubtful || len(w.ends) != before+records {
			t.Fatalf("%d may be in the stream, and %d results say so", doubtful, said)
		}
		for len(w.late) > 0 {
			w.commitLate()
		}
		w.calls, w.core.calls, w.core.flying = nil, 0, 0
		w.check()
	})
}

// The oldest records that can be sent go first. So the only record of a quiet key waits for no more
// than the distinct keys that were there before it, with 500 in each call, whatever the backlog of
// the busy keys.
func TestFairness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Config{Order: OrderPlain}.withDefaults().limits()
		l.calls, l.records = 1, rapid.IntRange(1, 5).Draw(t, "records")
		w := newWorld(t, l)
		hot := rapid.IntRange(1, l.records).Draw(t, "hot")
		put := func(key string) *entry {
			record := runnel.Record{PartitionKey: key}
			e := &entry{record: record, mark: uint64(len(w.records))}
			w.records = append(w.records, record)
			w.core.putAlone(w.now, e)
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
		// A call has room for one record of each older busy key, and for others.
		room := l.records - hot
		calls := 20 + others/l.records + 1
		if room > 0 {
			calls = others/room + 1
		}
		for range calls {
			w.land(true)
			w.launch()
			made := w.calls[0]
			for _, l := range made.lanes {
				switch e := l.unit.first; {
				case e == cold:
					return
				case e.number > cold.number:
					t.Fatalf("record %d goes before %d", e.number, cold.number)
				}
			}
		}
		t.Fatalf("%d hot keys, %d others: the cold one is not served after %d calls of %d",
			hot, others, calls, l.records)
	})
}
