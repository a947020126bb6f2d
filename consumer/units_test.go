package consumer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/lease"
)

// Aggregates are opened: each user record has its own key, hash key and sub-sequence number,
// and the Kinesis record's number and arrival time.
func TestAggregatesAreOpened(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		f.start("w1", j.into)
		f.stream.put("plain", "p")
		var e aggregate.Encoder
		for i := range 3 {
			r := aggregate.Record{PartitionKey: fmt.Sprint("k", i), Data: []byte{'0' + byte(i)}}
			if i == 1 {
				r.ExplicitHashKey = "12"
			}
			if err := e.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		f.stream.put(string(e.Seal(nil)), aggregate.OuterPartitionKey)
		e.Reset()
		f.stream.put(string(e.Seal(nil)), "empty") // 20 bytes: ordinary, as the KCL has it
		f.expect(&j, "plain 0 1 2 "+string(e.Seal(nil)))
		for i, r := range j.records[1:4] {
			want := runnel.Record{
				PartitionKey: fmt.Sprint("k", i), Data: []byte{'0' + byte(i)},
				ShardID: f.stream.shards[0].id,
				Position: runnel.Position{
					Sequence: runnel.SequenceNumber(*f.stream.shards[0].records[1].SequenceNumber),
					Sub:      int64(i),
				},
				ArrivalTime: *f.stream.shards[0].records[1].ApproximateArrivalTimestamp,
			}
			if i == 1 {
				want.ExplicitHashKey = "12"
			}
			if got := fmt.Sprint(r); got != fmt.Sprint(want) {
				t.Errorf("got %s, want %s", got, fmt.Sprint(want))
			}
			if cap(r.Data) != len(r.Data) {
				t.Errorf("the data of record %d reaches into the next one's", i)
			}
		}
	})
}

// Doubles are dropped, and the dropped records count as processed: the checkpoint passes them.
func TestDoublesAreDropped(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		m := f.start("w1", j.into)
		for _, data := range []string{
			unit(1, 1, "a", "a1", "a2"),
			unit(1, 1, "a", "a1", "a2"), // a double
			"ordinary",
			"ordinary", // no unit, no double
			pack(1, part{number: 2, low: 2, key: "b", data: []string{"b1"}}),
			pack(1, part{number: 4, low: 3, key: "a", data: []string{"a4"}}),
			pack(1, part{number: 3, low: 3, key: "b", data: []string{"b3"}}), // late, not a double
			unit(1, 1, "a", "a1", "a2"),                                      // a double behind newer ones
			pack(1, part{number: 3, low: 3, key: "a", data: []string{"a3"}}), // given up, overtaken
			unit(2, 1, "a", "other"),                                         // of another run
			pack(3, part{number: 2, low: 9, data: []string{"m"}, key: "m"}),  // malformed
			pack(0, part{key: "k", data: []string{"kpl1", "kpl2"}}),
			pack(0, part{key: "k", data: []string{"kpl1", "kpl2"}}),
			pack(1, part{key: "z", data: []string{"no-unit"}},
				part{number: 5, low: 5, key: "a", data: []string{"a5"}},
				part{number: 4, low: 4, key: "b", data: []string{"b4"}}),
		} {
			f.stream.put(data, "key")
		}
		want := "a1 a2 ordinary ordinary b1 a4 b3 other m kpl1 kpl2 kpl1 kpl2 no-unit a5"
		f.expect(&j, want)
		if doubles, malformed := f.dropped(); doubles != 6 || malformed != 1 {
			t.Errorf("%d doubles, %d malformed", doubles, malformed)
		}
		f.stream.put(unit(1, 1, "a", "a1", "a2"), "key")
		<-time.After(2 * time.Second)
		f.mustStop(m)
		if got, at := f.leases()[0].Processed(), f.stream.last(0, 1); got != at || j.text() != want {
			t.Errorf("behind a double the checkpoint is %s, want %s; %s", got, at, j.text())
		}
	})
}

// With KeepDoubles every record is delivered, and no record is read again.
func TestKeepDoubles(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		keep := func(c *consumer.Config) { c.KeepDoubles = true }
		m := f.start("w1", j.into, keep)
		f.stream.put(unit(1, 1, "a", "1", "2"), "key", "key")
		f.expect(&j, "1 2 1 2")
		f.mustStop(m)
		f.start("w2", j.into, keep)
		f.stream.put(unit(1, 1, "a", "1", "2"), "key")
		f.expect(&j, "1 2 1 2 1 2")
		if n := len(f.happened(consumer.EventRebuilt)); n != 0 {
			t.Errorf("read again %d times", n)
		}
	})
}

// A worker that takes over knows the units that were delivered before its checkpoint, as far back
// as a double can come: nearly 2H, through an ancestor that has not had a record, with the
// ancestors' leases cleaned away.
func TestDoublesAfterTakeOver(t *testing.T) {
	for _, shape := range []string{"same shard", "split", "split and merge", "row cleaned"} {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, killed %v", shape, kill), func(t *testing.T) {
				bubble(t, 1, func(f *fleet) { takeOver(f, shape, kill) })
			})
		}
	}
}

func takeOver(f *fleet, shape string, kill bool) {
	var j journal
	m := f.start("w1", j.into)
	f.stream.put(unit(1, 1, "a", "1", "2"), "a")
	f.stream.put("old", "a")
	<-time.After(aggregate.H)
	if shape != "same shard" {
		f.stream.split(0)
		<-time.After(time.Minute)
		f.stream.merge(0)
		if shape != "split and merge" {
			f.stream.split(0)
		}
	}
	<-time.After(aggregate.H * 8 / 10)
	f.stream.put("new", "a")
	f.expect(&j, "1 2 old new")
	if shape == "row cleaned" {
		for _, l := range f.leases() {
			if l.Ended() {
				if err := f.leaseTable().Delete(f.Context(), l); err != nil {
					f.Fatal(err)
				}
			}
		}
	}
	if kill {
		<-time.After(failover * 6 / 10) // checkpoints
		m.kill()
		<-m.err
	} else {
		f.mustStop(m)
	}
	f.start("w2", j.into)
	f.stream.put(unit(1, 1, "a", "1", "2"), "a")
	f.stream.put(unit(1, 2, "a", "3"), "a")
	f.expect(&j, "1 2 old new 3")
	if doubles, _ := f.dropped(); doubles != 2 {
		f.Errorf("%d doubles dropped, want 2", doubles)
	}
}

// A successor counts the time back to which it reads from its checkpoint, however long the outage
// was.
func TestDoublesAfterAnOutage(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		m := f.start("w1", j.into)
		f.stream.put(unit(1, 1, "a", "1"), "a")
		<-time.After(aggregate.H * 18 / 10)
		f.stream.put("x", "a")
		f.expect(&j, "1 x")
		f.mustStop(m)
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.put("y", "a")
		<-time.After(time.Hour)
		f.start("w2", j.into)
		f.expect(&j, "1 x y")
	})
}

// A shard begins with its parents' final states, for handlers and sinks: over splits and merges a
// double remains a double.
func TestDoublesAcrossReshards(t *testing.T) {
	for _, into := range []string{"handler", "sink"} {
		t.Run(into, func(t *testing.T) {
			bubble(t, 2, func(f *fleet) {
				var j journal
				s := newChain(calm(), 1)
				if into == "sink" {
					f.start("w1", intoSink(s))
					f.start("w2", intoSink(s))
				} else {
					f.start("w1", j.into) // alone: a stolen lease may repeat a record
				}
				a, b := f.stream.keysOf(0, 1)[0], f.stream.keysOf(1, 1)[0]
				send := func(number uint64, key, data string) {
					f.stream.put(unit(key[len(key)-1], number, key, data), key)
					<-time.After(5 * time.Second) // other shards' readers come later
				}
				send(1, a, "a1")
				send(1, b, "b1")
				<-time.After(time.Minute)
				f.stream.merge(0)
				<-time.After(time.Minute)
				send(1, b, "b1")
				send(2, b, "b2")
				send(1, a, "a1")
				<-time.After(time.Minute)
				f.stream.split(0)
				<-time.After(time.Minute)
				send(1, a, "a1")
				send(2, b, "b2")
				send(2, a, "a2")
				send(1, b, "b1")
				if into == "sink" {
					s.await(f, "a1 b1 b2 a2")
				} else {
					f.expect(&j, "a1 b1 b2 a2")
				}
			})
		})
	}
}

// An ancestor that was trimmed counts as empty: a double of its records is delivered, and reading
// goes on.
func TestTrimmedAncestor(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		m := f.start("w1", j.into)
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.split(0)
		f.stream.put(unit(1, 2, "a", "2"), "a")
		f.expect(&j, "1 2")
		f.mustStop(m)
		f.stream.mu.Lock()
		f.stream.shards[0].unlisted = true
		f.stream.mu.Unlock()
		f.start("w2", j.into)
		f.stream.put(pack(1, part{number: 1, low: 1, key: "b", data: []string{"1"}}), "a")
		f.stream.put(unit(1, 2, "a", "2"), "a")
		f.stream.put(unit(1, 3, "a", "3"), "a")
		// Unit 1 is below the mark that unit 2 has set, whatever its lane.
		f.expect(&j, "1 2 3")
		f.stream.put(unit(2, 1, "a", "4"), "a")
		f.expect(&j, "1 2 3 4")
	})
}

// A checkpoint may be inside an aggregate, written for example by a Java worker. The user records
// up to it are not delivered, the others are, and the aggregate's units are known behind it.
func TestCheckpointInsideAnAggregate(t *testing.T) {
	for sub, want := range []string{"2 3 4 x 5", "3 4 x 5", "4 x 5", "x 5"} {
		bubble(t, 1, func(f *fleet) {
			f.stream.put("before", "a")
			f.stream.put(unit(1, 1, "a", "0"), "a")
			f.stream.put(pack(1, part{number: 2, low: 2, key: "a", data: []string{"1", "2"}},
				part{number: 3, low: 2, key: "b", data: []string{"3", "4"}}), "a")
			at := f.stream.last(0, int64(sub))
			<-time.After(time.Minute)
			f.stream.put(unit(1, 1, "a", "0"), "a")
			f.stream.put("x", "a")
			f.stream.put(unit(1, 2, "a", "1", "2"), "a")
			f.stream.put(unit(1, 3, "b", "3", "4"), "b")
			table := f.leaseTable()
			if err := table.Ensure(f.Context()); err != nil {
				t.Fatal(err)
			}
			_, _, err := table.Create(f.Context(), lease.Lease{
				Key: f.stream.shards[0].id, Checkpoint: at,
			})
			if err != nil {
				t.Fatal(err)
			}
			var j journal
			m := f.start("w1", j.into)
			f.stream.put(unit(1, 4, "a", "5"), "a")
			f.expect(&j, want)
			f.mustStop(m)
			l := f.leases()[0]
			if end := f.stream.last(0, 0); l.Processed() != end {
				t.Errorf("the checkpoint is %s, want %s", l.Processed(), end)
			}
		})
	}
}

// If an application begins at LATEST or at a time, the earlier records are read again and not
// delivered, so that their doubles are not delivered either.
func TestDoublesOfWhatWasBeforeTheBeginning(t *testing.T) {
	for _, latest := range []bool{true, false} {
		bubble(t, 1, func(f *fleet) {
			f.stream.put(unit(1, 1, "a", "1"), "a")
			<-time.After(aggregate.H)
			f.stream.split(0)
			f.stream.put(unit(1, 2, "a", "2"), "a")
			<-time.After(aggregate.H / 2)
			from := runnel.FromTime(time.Now())
			if latest {
				from = runnel.FromLatest()
			}
			other := f.stream.keysOf(0, 1)[0] // a lane of the shard that "a" is in
			third := pack(1, part{number: 3, low: 1, key: other, data: []string{"3"}})
			if !latest { // behind the beginning already, so it must not count as delivered
				f.stream.put(third, "a")
			}
			var j journal
			f.start("w1", j.into, func(c *consumer.Config) { c.From = from })
			<-time.After(time.Second)
			f.stream.put(unit(1, 1, "a", "1"), "a")
			f.stream.put(unit(1, 2, "a", "2"), "a")
			if latest {
				f.stream.put(third, "a")
			}
			f.expect(&j, "3")
			if doubles, _ := f.dropped(); doubles != 2 {
				t.Errorf("%d doubles", doubles)
			}
		})
	}
}

// When the checkpoint's record has been trimmed, no record behind it counts as delivered.
func TestCheckpointTrimmed(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		var j journal
		m := f.start("w1", j.into)
		f.stream.put(unit(1, 1, "a", "1"), "a")
		f.stream.put(unit(1, 2, "a", "2"), "a")
		f.expect(&j, "1 2")
		f.mustStop(m)
		f.stream.put(unit(1, 3, "a", "3"), "a")
		f.stream.put(unit(1, 4, "a", "4"), "a")
		f.stream.shards[0].trimmed = 2
		f.start("w2", j.into)
		f.expect(&j, "1 2 3 4")
		if n := len(f.happened(consumer.EventTrimmed)); n != 1 {
			t.Errorf("trimmed %d times", n)
		}
	})
}

// A page has no more records than a read, but whole aggregates only; the shard's end is that of
// the last page.
func TestPagesOfAggregates(t *testing.T) {
	bubble(t, 1, func(f *fleet) {
		f.stream.atEndOnly = false
		for i := range 10 {
			f.stream.put(unit(1, uint64(i+1), "a", "1", "2", "3", "4", "5"), "a")
		}
		f.stream.split(0)
		var j journal
		f.start("w1", j.into, func(c *consumer.Config) { c.MaxRecords = 7 })
		f.expect(&j, strings.TrimSpace(strings.Repeat("1 2 3 4 5 ", 10)))
		if slices.Max(j.batches) != 10 || len(j.batches) != 5+1 {
			t.Errorf("batches of %v", j.batches)
		}
		f.await(failover, "the children", func() bool { return f.loads()["w1"] == 2 })
	})
	bubble(t, 1, func(f *fleet) {
		for i := range 6 {
			f.stream.put(unit(1, uint64(i+1), "a", "1", "2", "3", "4", "5"), "a")
		}
		var j journal
		m := f.start("w1", j.into, once, func(c *consumer.Config) { c.MaxRecords = 7 })
		if err := <-m.err; err != nil || len(j.records) != 30 {
			t.Errorf("%d records once, %v", len(j.records), err)
		}
	})
}
