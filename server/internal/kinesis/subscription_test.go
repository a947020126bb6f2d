package kinesis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// subscriber reads a subscription.
type subscriber struct {
	n      *node
	events wire.Events
}

// gotEvent is an event as SubscribeToShard sends it.
type gotEvent struct {
	got
	ContinuationSequenceNumber *string
	exception                  string // code and message; "": none
}

func (e gotEvent) number() string { return *e.ContinuationSequenceNumber }

func (n *node) trySubscribe(consumer, shard string, position m) (*subscriber, error) {
	body, err := json.Marshal(m{"ConsumerARN": consumer, "ShardId": shard, "StartingPosition": position})
	n.must(err)
	answer, err := n.Serve(n.ctx, &wire.Call{
		Service: "kinesis", Operation: "SubscribeToShard", Body: body, World: n.world,
	})
	if err != nil {
		return nil, err
	}
	s := &subscriber{n: n, events: answer.Events}
	return s, nil
}

// subscribe begins a subscription, which must succeed.
func (n *node) subscribe(consumer, shard string, position m) *subscriber {
	n.t.Helper()
	s, err := n.trySubscribe(consumer, shard, position)
	n.must(err)
	return s
}

func (n *node) notSubscribed(consumer, shard string, position m, code, text string) {
	n.t.Helper()
	_, err := n.trySubscribe(consumer, shard, position)
	wantError(n.t, err, code, text)
}

// next returns the next event; it must come.
func (s *subscriber) next() gotEvent {
	s.n.t.Helper()
	e, err := s.try(s.n.ctx)
	s.n.must(err)
	return e
}

func (s *subscriber) try(ctx context.Context) (gotEvent, error) {
	s.n.t.Helper()
	event, err := s.events.Next(ctx)
	var e gotEvent
	if err != nil {
		return e, err
	}
	if event.Exception {
		var body struct {
			Message string `json:"message"`
		}
		s.n.must(json.Unmarshal(event.Payload, &body))
		e.exception = event.Type + ": " + body.Message
		return e, nil
	}
	if event.Type != "SubscribeToShardEvent" {
		s.n.t.Fatalf("an event has the type %q", event.Type)
	}
	s.n.must(json.Unmarshal(event.Payload, &e))
	if e.Records == nil {
		s.n.t.Errorf("an event has no Records: %s", event.Payload)
	}
	return e, nil
}

// ended checks that the stream has come to its proper end.
func (s *subscriber) ended() {
	s.n.t.Helper()
	for range 2 {
		if e, err := s.try(s.n.ctx); !errors.Is(err, io.EOF) {
			s.n.t.Fatalf("after the end there is %+v, %v", e, err)
		}
	}
	s.events.Close()
}

// excepted checks that the next event is an exception and the last one.
func (s *subscriber) excepted(want string) {
	s.n.t.Helper()
	if e := s.next(); e.exception != want {
		s.n.t.Fatalf("the event is %+v, want the exception %s", e, want)
	}
	s.ended()
}

var (
	fromStart  = m{"Type": "TRIM_HORIZON"}
	fromLatest = m{"Type": "LATEST"}
)

func after(number string) m { return m{"Type": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": number} }
func exactly(number string) m {
	return m{"Type": "AT_SEQUENCE_NUMBER", "SequenceNumber": number}
}

// inBubble runs a test in virtual time, with a node that is stopped at the end.
func inBubble(t *testing.T, test func(n *node), change ...func(*Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, change...)
		test(n)
		n.stop()
	})
}

// Existing records come at once and new ones as soon as they are durable; in between there is an
// event every five seconds. After five minutes the stream ends.
func TestSubscriptionLife(t *testing.T) {
	inBubble(t, func(n *node) {
		n.create("orders", 1)
		app := n.register("orders", "app")
		n.put("orders", "k", "one")
		_, two := n.put("orders", "k", "two")
		began := time.Now()
		s := n.subscribe(app, "0", fromStart)
		first := s.next()
		if first.data() != "one two" || first.MillisBehindLatest != 0 || first.ChildShards != nil {
			t.Errorf("the first event is %+v", first)
		}
		if first.number() <= two {
			t.Errorf("it leads up to %s, its last record is %s", first.number(), two)
		}
		put := time.AfterFunc(7*time.Second, func() { n.put("orders", "k", "three") })
		defer put.Stop()
		var times []string
		for range 3 {
			e := s.next()
			times = append(times, fmt.Sprint(time.Since(began), " ", e.data()))
		}
		if got := strings.Join(times, ","); got != "5s ,7s three,12s " {
			t.Errorf("the events are at %s", got)
		}
		beats := 0
		for {
			_, err := s.try(n.ctx)
			if err != nil {
				break
			}
			beats++
		}
		if alive := time.Since(began); alive != subscriptionLife || beats != 57 {
			t.Errorf("the stream ended after %v and %d more events", alive, beats)
		}
		s.ended()
	})
}

// A subscriber that always finds records does not outlive the five minutes either.
func TestSubscriptionLifeUnderLoad(t *testing.T) {
	inBubble(t, func(n *node) {
		n.create("orders", 1)
		s := n.subscribe(n.register("orders", "app"), "0", fromLatest)
		began, events := time.Now(), 0
		for {
			n.put("orders", "k", "x")
			if _, err := s.try(n.ctx); err != nil {
				break
			}
			time.Sleep(time.Second)
			events++
		}
		if alive := time.Since(began); alive != subscriptionLife || events != 300 {
			t.Errorf("the stream ended after %v and %d events", alive, events)
		}
		s.ended()
	})
}

// Within five seconds of a successful call a second subscription is refused; after that the newer
// one takes over. Other consumers and other shards are not affected.
func TestSubscriptionTakeover(t *testing.T) {
	inBubble(t, func(n *node) {
		const inUse = "Another active subscription exists for this consumer: " +
			"000000000000:orders:shardId-000000000000:app"
		n.create("orders", 2)
		app, other := n.register("orders", "app"), n.register("orders", "other")
		first := n.subscribe(app, "0", fromLatest)
		first.next()
		for _, s := range []*subscriber{
			n.subscribe(app, "1", fromLatest), n.subscribe(other, "0", fromLatest),
		} {
			s.next()
			defer s.events.Close()
		}
		time.Sleep(4999 * time.Millisecond)
		n.notSubscribed(app, "0", fromLatest, codeInUse, inUse)
		waiting := make(chan gotEvent)
		go func() { waiting <- first.next() }()
		if e := <-waiting; e.exception != "" {
			t.Errorf("a refused subscription ends the first: %s", e.exception)
		}
		go func() { waiting <- first.next() }()
		synctest.Wait()
		second := n.subscribe(app, "0", fromLatest)
		if e := <-waiting; e.exception != codeInUse+": "+inUse {
			t.Errorf("the first subscription gets %+v", e)
		}
		first.ended()
		n.put("orders", "k", "one")
		if e := second.next(); e.exception != "" {
			t.Errorf("the second subscription gets %+v", e)
		}
		// It has ended, and its five seconds still count.
		second.events.Close()
		n.notSubscribed(app, "0", fromLatest, codeInUse, inUse)
		time.Sleep(5 * time.Second)
		third := n.subscribe(app, "0", fromLatest)
		third.next()
		third.events.Close()
	})
}

// A refused call does not count as a successful one.
func TestRefusedSubscriptionDoesNotCount(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	app := n.register("orders", "app")
	n.notSubscribed(app, "0", after("1"), codeInvalid, "Invalid StartingSequenceNumber")
	s := n.subscribe(app, "0", fromStart)
	s.next()
	s.events.Close()
}

func TestSubscriptionRefusals(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock), func(cfg *Config) { cfg.StreamDelay = time.Second })
	n.create("orders", 1)
	clock.advance(time.Second)
	app := n.register("orders", "app")
	created := clock.ms.Load() / 1000
	inactive := fmt.Sprintf("Consumer app with creation timestamp %d under stream: orders , "+
		"account 000000000000 is not in ACTIVE status.", created)
	n.notSubscribed(app, "0", fromStart, codeInUse, inactive)
	clock.advance(time.Second)
	_, one := n.put("orders", "k", "one")
	members := "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER"
	for _, test := range []struct {
		consumer, shard string
		position        m
		code, text      string
	}{
		{app + "1", "0", fromStart, codeNotFound, "Consumer " + app + "1, account"},
		{app, "7", fromStart, codeNotFound, "Shard shardId-000000000007 in stream orders under account 000000000000 does not exist"},
		{app, "x", fromStart, codeNotFound, "Could not find shard x"},
		{app, "0", nil, codeValidation, "Value null at 'startingPosition' failed"},
		{app, "0", m{}, codeValidation, "Value null at 'startingPosition.type' failed"},
		{app, "0", m{"Type": "NOW"}, codeValidation, "Value 'NOW' at 'startingPosition.type'"},
		{ordersARN, "0", fromStart, codeValidation, "at 'consumerARN' failed"},
		{app, "0", m{"Type": "AT_SEQUENCE_NUMBER"}, codeInvalid, members},
		{app, "0", m{"Type": "TRIM_HORIZON", "SequenceNumber": one}, codeInvalid, members},
		{app, "0", m{"Type": "AT_TIMESTAMP"}, codeInvalid, "Must specify timestampInMillis parameter"},
		{app, "0", m{"Type": "AT_TIMESTAMP", "Timestamp": created + 100}, codeInvalid, "timestampInMillis"},
		{app, "0", after("77"), codeInvalid, "Invalid StartingSequenceNumber"},
	} {
		n.notSubscribed(test.consumer, test.shard, test.position, test.code, test.text)
	}
	n.call("DeregisterStreamConsumer", m{"ConsumerARN": app})
	n.notSubscribed(app, "0", fromStart, codeInUse, inactive)
	n.world.Region = "eu-west-1"
	n.notSubscribed(app, "0", fromStart, codeNotFound, "Consumer "+app)
}

// Every cause of an end reaches a waiting subscription.
func TestSubscriptionEnds(t *testing.T) {
	const noStream = "ResourceNotFoundException: Stream orders under account 000000000000 not found."
	for name, test := range map[string]struct {
		end  func(n *node, app string)
		want string // the exception; "": a proper end
	}{
		"deregistered": {func(n *node, app string) {
			n.call("DeregisterStreamConsumer", m{"ConsumerARN": app})
		}, "ResourceNotFoundException: Consumer %s, account 000000000000 not found."},
		"stream deleted": {func(n *node, _ string) {
			n.call("DeleteStream", m{"StreamName": "orders", "EnforceConsumerDeletion": true})
		}, noStream},
		"closed": {func(n *node, _ string) { n.must(n.Service.Close()) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(n *node) {
				n.create("orders", 1)
				time.Sleep(time.Second)
				app := n.register("orders", "app")
				time.Sleep(time.Second)
				s := n.subscribe(app, "0", fromLatest)
				s.next()
				began := time.Now()
				var events sync.WaitGroup
				events.Go(func() {
					if test.want == "" {
						s.ended()
						return
					}
					s.excepted(strings.Replace(test.want, "%s", app, 1))
				})
				synctest.Wait()
				test.end(n, app)
				events.Wait()
				// Not before the stream is gone, and not only when the next event is due.
				if late := time.Since(began); late > 101*time.Millisecond {
					t.Errorf("the subscription ended %v later", late)
				}
			}, func(cfg *Config) { cfg.StreamDelay = 100 * time.Millisecond })
		})
	}
}

// A stream that is DELETING is read until it is gone.
func TestSubscriptionOfDeletingStream(t *testing.T) {
	inBubble(t, func(n *node) {
		n.create("orders", 1)
		time.Sleep(time.Minute)
		app := n.register("orders", "app")
		time.Sleep(time.Minute)
		s := n.subscribe(app, "0", fromLatest)
		s.next()
		n.call("DeleteStream", m{"StreamName": "orders", "EnforceConsumerDeletion": true})
		began := time.Now()
		if got := n.consumers("orders"); got != "app DELETING" {
			t.Errorf("the stream's consumers are %s", got)
		}
		n.notSubscribed(app, "0", fromLatest, codeInUse, "is not in ACTIVE status.")
		beats := 0
		for e := s.next(); e.exception == ""; e = s.next() {
			beats++
		}
		if late := time.Since(began); late != time.Minute || beats != 11 {
			t.Errorf("the subscription ended after %v and %d events", late, beats)
		}
		s.ended()
	}, func(cfg *Config) { cfg.StreamDelay = time.Minute })
}

// A subscriber that goes away ends the wait.
func TestSubscriptionCancelled(t *testing.T) {
	inBubble(t, func(n *node) {
		n.create("orders", 1)
		s := n.subscribe(n.register("orders", "app"), "0", fromLatest)
		s.next()
		ctx, cancel := context.WithCancelCause(n.ctx)
		gone := errors.New("the connection is gone")
		time.AfterFunc(time.Second, func() { cancel(gone) })
		if _, err := s.try(ctx); !errors.Is(err, gone) {
			t.Errorf("the wait ends with %v", err)
		}
		s.events.Close()
		if f := n.fanOut; len(f.streams)+len(f.shards) != 0 || len(f.slots) != 1 {
			t.Errorf("of a subscription there are left %v", f)
		}
	})
}

// No change between two looks at the stream is missed: before the first one, and between a look and
// the wait.
func TestSubscriptionMissesNothing(t *testing.T) {
	inBubble(t, func(n *node) {
		n.create("orders", 1)
		app := n.register("orders", "app")
		s := n.subscribe(app, "0", fromLatest)
		changed := n.streams.catalogue.OnChange(nil) // as if the change came before the subscription was registered
		n.call("DeregisterStreamConsumer", m{"ConsumerARN": app})
		s.excepted("ResourceNotFoundException: Consumer " + app + ", account 000000000000 not found.")
		n.streams.catalogue.OnChange(changed)

		s = n.subscribe(n.register("orders", "other"), "0", fromLatest)
		s.next()
		u, began := s.events.(*subscription), time.Now()
		u.signal(func(s *signals) { s.changed = true })
		n.must(u.wait(n.ctx, began.Add(time.Hour)))
		if late := time.Since(began); late != 0 {
			t.Errorf("a signal from before the wait ends it %v later", late)
		}
		s.events.Close()
	})
}

// The last event of a closed shard names its children and has no ContinuationSequenceNumber.
func TestSubscriptionShardEnd(t *testing.T) {
	const zero, one = "shardId-000000000000", "shardId-000000000001"
	for operation, test := range map[string]struct {
		in       m
		children string
	}{
		"SplitShard": {
			m{"ShardToSplit": "0", "NewStartingHashKey": "99"},
			"[{shardId-000000000002 [" + zero + "]} {shardId-000000000003 [" + zero + "]}]",
		},
		"MergeShards": {
			m{"ShardToMerge": "0", "AdjacentShardToMerge": "1"},
			"[{shardId-000000000002 [" + zero + " " + one + "]}]",
		},
	} {
		inBubble(t, func(n *node) {
			n.create("orders", 2)
			time.Sleep(time.Minute)
			app, late := n.register("orders", "app"), n.register("orders", "late")
			time.Sleep(time.Minute)
			s := n.subscribe(app, "0", fromLatest)
			s.next()
			n.putLow("one")
			test.in["StreamName"] = "orders"
			n.call(operation, test.in)
			asked := time.Now()
			if n.status("orders") != catalogue.StatusUpdating {
				t.Error("the stream is not UPDATING")
			}
			if e := s.next(); e.data() != "one" || e.ChildShards != nil {
				t.Errorf("before the end there is %+v", e)
			}
			time.Sleep(2 * time.Second) // so that the end is not due with an empty event
			n.putLow("two")
			for i, data := range []string{"two", ""} { // UPDATING for ten seconds
				if e := s.next(); e.data() != data || e.ChildShards != nil {
					t.Errorf("while UPDATING, event %d is %+v", i, e)
				}
			}
			end := func(s *subscriber) {
				e := s.next()
				if e.ContinuationSequenceNumber != nil || e.data() != "" ||
					e.MillisBehindLatest != 0 || fmt.Sprint(e.ChildShards) != test.children {
					t.Errorf("the end is %+v, want the children %s", e, test.children)
				}
				s.ended()
			}
			end(s)
			if took := time.Since(asked); took != 10*time.Second {
				t.Errorf("the end comes after %v", took)
			}
			end(n.subscribe(late, "0", fromLatest)) // KCL asks like this for the end again
			time.Sleep(time.Minute)
			parent := n.list("orders", "ShardFilter", m{"Type": "AT_TRIM_HORIZON"})[0]
			ending := parent.SequenceNumberRange.EndingSequenceNumber
			end(n.subscribe(late, "0", exactly(ending)))
			end(n.subscribe(app, "0", after(ending)))
		}, func(cfg *Config) { cfg.StreamDelay = 10 * time.Second })
	}
}

// A waiting subscription notices the shard's end at once.
func TestSubscriptionShardEndWhileWaiting(t *testing.T) {
	inBubble(t, func(n *node) {
		n.create("orders", 1)
		s := n.subscribe(n.register("orders", "app"), "0", fromLatest)
		s.next()
		began := time.Now()
		var events sync.WaitGroup
		events.Go(func() {
			if e := s.next(); len(e.ChildShards) != 2 {
				t.Errorf("the event is %+v", e)
			}
			s.ended()
		})
		synctest.Wait()
		n.call("SplitShard",
			m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "99"})
		events.Wait()
		if late := time.Since(began); late != 0 {
			t.Errorf("the end comes %v later", late)
		}
	})
}
