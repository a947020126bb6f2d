package kinesis

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Twenty waiting consumers of a shard get every record at once, in order. One that reads nothing
// does not disturb the others, and gets everything later.
func TestFanOutToMany(t *testing.T) {
	inBubble(t, func(n *node) {
		const records = 50
		n.create("orders", 1)
		slow := n.subscribe(n.register("orders", "slow"), "0", fromLatest)
		want := make([]string, records)
		for i := range want {
			want[i] = fmt.Sprint("record-", i)
		}
		began := time.Now()
		var readers sync.WaitGroup
		for c := range maxConsumers - 1 {
			s := n.subscribe(n.register("orders", fmt.Sprint("app-", c)), "0", fromLatest)
			s.next()
			readers.Go(func() {
				defer s.events.Close()
				var got []string
				for len(got) < records {
					for _, r := range s.next().Records {
						got = append(got, string(r.Data))
					}
				}
				if strings.Join(got, " ") != strings.Join(want, " ") {
					t.Errorf("consumer %d got %s", c, got)
				}
			})
		}
		for i, data := range want {
			n.put("orders", "k", data)
			if i%3 == 0 {
				synctest.Wait()
			}
		}
		readers.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("the records came within %v", took)
		}
		if got := slow.next().data(); got != strings.Join(want, " ") {
			t.Errorf("the slow consumer got %s", got)
		}
		slow.events.Close()
		if f := n.fanOut; len(f.streams)+len(f.shards) != 0 {
			t.Errorf("of the subscriptions there are left %v, %v", f.streams, f.shards)
		}
	})
}

// A shared event is the same for all subscriptions; other settings give another event.
func TestSharedEvents(t *testing.T) {
	inBubble(t, func(n *node) {
		n.create("orders", 1)
		var all []*subscriber
		for c := range 3 {
			s := n.subscribe(n.register("orders", fmt.Sprint("app-", c)), "0", fromLatest)
			s.next()
			all = append(all, s)
		}
		payload := func(s *subscriber) *byte {
			event, err := s.events.Next(n.ctx)
			n.must(err)
			return &event.Payload[0]
		}
		n.put("orders", "k", "one")
		if first := payload(all[0]); payload(all[1]) != first || payload(all[2]) != first {
			t.Error("the event is not shared")
		}
		n.put("orders", "k", "two")
		first := payload(all[0])
		n.put("orders", "k", "three")
		if got := all[1].next(); got.data() != "two three" {
			t.Errorf("behind the tip there comes %q", got.data())
		}
		if payload(all[2]) == first || all[0].next().data() != "three" {
			t.Error("a shared event is given for another position")
		}
		n.put("orders", "k", strings.Repeat("x", 2*maxShared))
		if payload(all[0]) == payload(all[1]) {
			t.Error("a large event is kept")
		}
		for _, s := range all {
			s.events.Close()
		}
	})
}

// Slots of ended subscriptions do not pile up.
func TestFanOutForgets(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 1)
	f := n.fanOut
	for i := range 3 * minSweptSlots {
		name := fmt.Sprint("app-", i)
		app := n.register("orders", name)
		n.subscribe(app, "0", fromLatest).events.Close()
		n.call("DeregisterStreamConsumer", m{"ConsumerARN": app})
		clock.advance(time.Second)
		if len(f.slots) > minSweptSlots {
			t.Fatalf("after %d subscriptions there are %d slots", i+1, len(f.slots))
		}
	}
}

// A restart forgets the running subscriptions, and the consumers stay.
func TestSubscriptionAfterRestart(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	n.put("orders", "k", "one")
	app := n.register("orders", "app")
	s := n.subscribe(app, "0", fromStart)
	number := s.next().number()
	n.stop()
	s.ended()
	if _, err := n.trySubscribe(app, "0", fromStart); err == nil {
		t.Error("a closed service takes a subscription")
	}
	n = startNode(t, n.fs)
	n.put("orders", "k", "two")
	s = n.subscribe(app, "0", after(number))
	if got := s.next().data(); got != "two" {
		t.Errorf("after the restart it goes on with %q", got)
	}
	s.events.Close()
}

// Subscriptions come and go during puts, reshards, and at last deletions.
func TestFanOutRaces(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	done := make(chan struct{})
	var writers, readers sync.WaitGroup
	writers.Go(func() { n.reshardUntil(done, "orders") })
	writers.Go(func() {
		for i := range 300 * soak() {
			n.put("orders", fmt.Sprint(i), "x")
		}
	})
	for c := range 4 {
		app := n.register("orders", fmt.Sprint("app-", c))
		readers.Go(func() {
			for from := ""; ; {
				in := m{"StreamName": "orders", "MaxResults": 1}
				if from != "" {
					in["ExclusiveStartShardId"] = from
				}
				out, err := n.try("ListShards", in)
				if err != nil {
					return // the stream is gone
				}
				shards := out["Shards"].([]any)
				if len(shards) == 0 {
					return
				}
				from = shards[0].(m)["ShardId"].(string)
				s, err := n.trySubscribe(app, from, fromStart)
				if err != nil {
					continue
				}
				for { // in an open shard it waits for the closing or the deletion
					if e, err := s.try(n.ctx); err != nil || e.exception != "" {
						break
					}
				}
				s.events.Close()
			}
		})
	}
	writers.Wait()
	close(done)
	n.call("DeleteStream", m{"StreamName": "orders", "EnforceConsumerDeletion": true})
	readers.Wait()
	t.Logf("soak: %d operations", 300*soak())
}

// BenchmarkFanOut measures the cost of a record that goes to so many consumers of a shard.
func BenchmarkFanOut(b *testing.B) {
	for _, consumers := range []int{1, 20} {
		b.Run(fmt.Sprint("consumers=", consumers), func(b *testing.B) {
			n := newNode(b)
			n.create("orders", 1)
			var all []*subscriber
			for c := range consumers {
				s := n.subscribe(n.register("orders", fmt.Sprint("app-", c)), "0", fromLatest)
				s.next()
				all = append(all, s)
			}
			data := strings.Repeat("x", 1024)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				n.put("orders", "k", data)
				b.StartTimer()
				for _, s := range all {
					if _, err := s.events.Next(n.ctx); err != nil {
						b.Fatal(err)
					}
				}
			}
			for _, s := range all {
				s.events.Close()
			}
		})
	}
}
