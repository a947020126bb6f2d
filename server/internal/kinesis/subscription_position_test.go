package kinesis

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
)

// For any start and any events so far, the number of the last event continues with exactly the
// remaining records, with both types, here and in GetShardIterator.
func TestContinuation(t *testing.T) {
	early := func(*node) m { return m{"Type": "AT_TIMESTAMP", "Timestamp": 0} }
	for name, test := range map[string]struct {
		puts     string
		position func(n *node) m
		want     string // the first event
	}{
		"empty, TRIM_HORIZON": {"", func(*node) m { return fromStart }, ""},
		"empty, LATEST":       {"", func(*node) m { return fromLatest }, ""},
		"empty, AT_TIMESTAMP": {"", early, ""},
		"empty, the shard's start": {"", func(n *node) m {
			return exactly(n.list("orders")[0].SequenceNumberRange.StartingSequenceNumber)
		}, ""},
		"empty, after the shard's start": {"", func(n *node) m {
			return after(n.list("orders")[0].SequenceNumberRange.StartingSequenceNumber)
		}, ""},
		"TRIM_HORIZON":        {"a b", func(*node) m { return fromStart }, "a b"},
		"LATEST":              {"a b", func(*node) m { return fromLatest }, ""},
		"AT_TIMESTAMP, early": {"a b", early, "a b"},
		"AT_TIMESTAMP, now": {"a b", func(n *node) m {
			return m{"Type": "AT_TIMESTAMP", "Timestamp": float64(n.streams.clock.Read()) / 1000}
		}, ""},
		"AT_SEQUENCE_NUMBER": {"a b", func(n *node) m {
			records, _ := n.drain("orders", "0")
			return exactly(records[1].SequenceNumber)
		}, "b"},
		"AFTER_SEQUENCE_NUMBER": {"a b", func(n *node) m {
			records, _ := n.drain("orders", "0")
			return after(records[0].SequenceNumber)
		}, "b"},
		"after the last": {"a b", func(n *node) m {
			records, _ := n.drain("orders", "0")
			return after(records[1].SequenceNumber)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(n *node) {
				n.create("orders", 1)
				for _, data := range strings.Fields(test.puts) {
					n.put("orders", "k", data)
				}
				time.Sleep(time.Second)
				position := test.position(n)
				app := n.register("orders", "app")
				for i, again := range []func(string) m{after, exactly} {
					s := n.subscribe(app, "0", position)
					e := s.next()
					if e.data() != test.want {
						t.Errorf("there comes %q, want %q", e.data(), test.want)
					}
					number := e.number()
					s.events.Close()
					time.Sleep(5 * time.Second)
					s = n.subscribe(app, "0", again(number)) // nothing new: nothing comes
					if e := s.next(); e.data() != "" || e.number() != number {
						t.Errorf("at once it goes on with %+v after %s", e, number)
					}
					s.events.Close()
					fresh := fmt.Sprint("new-", i)
					n.put("orders", "k", fresh)
					time.Sleep(5 * time.Second)
					s = n.subscribe(app, "0", again(number))
					if e := s.next(); e.data() != fresh {
						t.Errorf("it goes on with %q", e.data())
					}
					s.events.Close()
					it := n.iterator("orders", "0", again(number)["Type"].(string),
						"StartingSequenceNumber", number)
					if got := n.get(it, 0).data(); got != fresh {
						t.Errorf("an iterator goes on with %q", got)
					}
					position = after(n.lastNumber("orders", "0"))
					test.want = ""
					time.Sleep(5 * time.Second)
				}
			})
		})
	}
}

func (n *node) lastNumber(stream, shard string) string {
	n.t.Helper()
	records, _ := n.drain(stream, shard)
	return records[len(records)-1].SequenceNumber
}

// A continuation number is above the records before it and below those after it.
func TestContinuationOrder(t *testing.T) {
	sh := &catalogue.Shard{Index: 17, Created: 1_790_000_000}
	for _, index := range []uint64{1, 2, 1 << 40, endIndex - 1} {
		before := numberOf(sh, shardlog.Number{Serial: index - 1, Arrival: 1 << 41}).String()
		after := numberOf(sh, shardlog.Number{Serial: index}).String()
		got := continuation(sh, index-1).String()
		if len(got) != len(before) || got <= before || got >= after || got >= endOf(sh) {
			t.Errorf("the number before record %d is %s, that of the record before it %s, its own %s",
				index, got, before, after)
		}
		if n, err := parseNumber(got); err != nil || n.index != index-1 || n.arrival != maxArrival {
			t.Errorf("%s is read as %+v, %v", got, n, err)
		}
	}
}

// Trimmed records are left out: the rest comes from the oldest on.
func TestSubscriptionOfTrimmedPosition(t *testing.T) {
	inBubble(t, func(n *node) {
		n.create("orders", 1)
		app := n.register("orders", "app")
		s := n.subscribe(app, "0", fromStart)
		start := s.next().number()
		s.events.Close()
		_, old := n.put("orders", "k", "old")
		n.put("orders", "k", "older")
		time.Sleep(23 * time.Hour)
		n.put("orders", "k", "young")
		s = n.subscribe(app, "0", fromStart)
		time.Sleep(2 * time.Hour) // it does not read meanwhile, and its five minutes begin later
		n.sweeper.sweep(n.ctx)
		e := s.next()
		if e.data() != "young" {
			t.Errorf("after the sweep there comes %q", e.data())
		}
		s.events.Close()
		for _, position := range []m{after(start), exactly(start), after(old), exactly(old), fromStart} {
			time.Sleep(5 * time.Second)
			s := n.subscribe(app, "0", position)
			if e := s.next(); e.data() != "young" {
				t.Errorf("from %v there comes %q", position, e.data())
			}
			s.events.Close()
		}
		// All records expire, also those before a subscription's position.
		time.Sleep(5 * time.Second)
		s = n.subscribe(app, "0", fromStart)
		time.Sleep(24 * time.Hour)
		n.sweeper.sweep(n.ctx)
		first := s.next()
		if first.data() != "" || first.MillisBehindLatest != 0 {
			t.Errorf("of an empty shard there comes %+v", first)
		}
		n.put("orders", "k", "new")
		if e := s.next(); e.data() != "new" {
			t.Errorf("then there comes %+v", e)
		}
		s.events.Close()
		time.Sleep(5 * time.Second)
		s = n.subscribe(app, "0", exactly(first.number()))
		if e := s.next(); e.data() != "new" {
			t.Errorf("it goes on with %q", e.data())
		}
		s.events.Close()
	})
}

// A closed shard disappears if its data expires under a subscription.
func TestSubscriptionOfExpiredShard(t *testing.T) {
	inBubble(t, func(n *node) {
		n.create("orders", 1)
		n.put("orders", "k", "one")
		s := n.subscribe(n.register("orders", "app"), "0", fromStart)
		n.call("SplitShard",
			m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "99"})
		time.Sleep(25 * time.Hour)
		n.sweeper.sweep(n.ctx)
		s.excepted("ResourceNotFoundException: Shard shardId-000000000000 in stream orders under " +
			"account 000000000000 does not exist")
	})
}

// An event holds about a mebibyte, or one record. MillisBehindLatest is the delay of its last
// record.
func TestSubscriptionEventSize(t *testing.T) {
	inBubble(t, func(n *node) {
		n.create("orders", 1)
		n.call("UpdateMaxRecordSize", m{"StreamARN": ordersARN, "MaxRecordSizeInKiB": 10240})
		synctest.Wait()
		big := func(size int) string { return strings.Repeat("x", size) }
		for _, size := range []int{600 << 10, 400 << 10, 400 << 10, 3 << 20, 1} {
			n.put("orders", "k", big(size))
			time.Sleep(time.Second)
		}
		s := n.subscribe(n.register("orders", "app"), "0", fromStart)
		var events []string
		for range 4 {
			e := s.next()
			size := 0
			for _, r := range e.Records {
				size += len(r.Data)
			}
			events = append(events,
				fmt.Sprint(len(e.Records), " records ", size>>10, " KiB ", e.MillisBehindLatest, " ms"))
		}
		want := "2 records 1000 KiB 4000 ms, 1 records 400 KiB 3000 ms, " +
			"1 records 3072 KiB 2000 ms, 1 records 0 KiB 0 ms"
		if got := strings.Join(events, ", "); got != want {
			t.Errorf("the events are %s\nwant %s", got, want)
		}
		if u := s.events.(*subscription); cap(u.space) > maxSpace {
			t.Errorf("the subscription holds %d bytes", cap(u.space))
		}
		s.events.Close()
	})
}
