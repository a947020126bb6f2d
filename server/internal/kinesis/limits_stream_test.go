package kinesis

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/server/internal/limit"
)

// Every operation has a limit of its own or is limited by shard. An operation that is limited by
// stream finds its stream however the request names it.
func TestLimitsKnowEveryOperation(t *testing.T) {
	byShard := map[string]bool{
		"PutRecord": true, "PutRecords": true, "GetRecords": true, "GetShardIterator": true,
		"SubscribeToShard": true,
	}
	members := map[string]string{
		"StreamName":   "orders",
		"StreamARN":    "arn:aws:kinesis:us-east-1:000000000000:stream/orders",
		"ConsumerName": "c",
		"ConsumerARN":  "arn:aws:kinesis:us-east-1:000000000000:stream/orders/consumer/c:1",
	}
	for name, op := range operations {
		id, found := limit.OfOperation(name)
		if found == byShard[name] {
			t.Errorf("%s has a limit of its own: %v", name, found)
		}
		if !found || id.Of().Per != limit.Stream {
			continue
		}
		ways := 0
		for _, named := range [][]string{{"StreamName"}, {"StreamARN"}, {"StreamARN", "ConsumerName"}, {"ConsumerARN"}} {
			in := reflect.New(op.input)
			known := true
			for _, member := range named {
				field := in.Elem().FieldByName(member)
				if known = known && field.IsValid(); known {
					value := members[member]
					field.Set(reflect.ValueOf(&value))
				}
			}
			consumer := in.Elem().FieldByName("ConsumerARN").IsValid()
			if !known || (consumer && len(named) == 1 && named[0] == "StreamARN") {
				continue
			}
			ways++
			if stream, err := streamOf(here, in.Interface()); stream != "orders" || err != nil {
				t.Errorf("%s by %v is about %q, %v", name, named, stream, err)
			}
		}
		if ways == 0 {
			t.Errorf("%s names no stream", name)
		}
	}
	for _, l := range limit.All() {
		if _, served := operations[l.Operation]; l.Operation != "" && !served {
			t.Errorf("%s limits %s, which is not served", l.Name, l.Operation)
		}
	}
}

func (n *node) consumer(stream, name string) (arn string) {
	n.t.Helper()
	out := n.call("RegisterStreamConsumer", m{
		"StreamARN": "arn:aws:kinesis:us-east-1:000000000000:stream/" + stream, "ConsumerName": name,
	})
	return out["Consumer"].(m)["ConsumerARN"].(string)
}

// A subscription keeps to its consumer's rate: the excess comes later, and in between it shows that
// it is alive and not at the tip.
func TestLimitFanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, withLimits(t, "fan-out-bytes=1KiB"))
		defer n.stop()
		n.create("orders", 1)
		s := n.subscribe(n.consumer("orders", "c"), "0", fromStart)
		start := time.Now()
		want := func(data int, behind int64, after time.Duration) {
			t.Helper()
			e := s.next()
			if len(e.data()) != data || e.MillisBehindLatest != behind || time.Since(start) != after {
				t.Fatalf("after %v come %d bytes, %d ms behind; want %d, %d, after %v",
					time.Since(start), len(e.data()), e.MillisBehindLatest, data, behind, after)
			}
		}
		want(0, 0, 0)
		put := func(size int) {
			n.call("PutRecords", m{"StreamName": "orders", "Records": []m{record(0, 1, size)}})
		}
		put(512)
		want(511, 0, 0)
		put(7 << 10)
		want(7<<10-1, 0, 0) // one event may go beyond the rate: nothing is cut in two
		put(1)
		want(0, 1, 5*time.Second)
		want(0, 0, 6500*time.Millisecond) // 6.5 KiB too much
		put(1024)
		want(1023, 0, 6501*time.Millisecond)
		n.SetLimits(nil)
		put(100 << 10)
		put(100 << 10)
		want(200<<10-1, 0, 7501*time.Millisecond) // the debt from before; the rest is free
		put(100 << 10)
		want(100<<10-1, 0, 7501*time.Millisecond)
		s.events.Close()
	})
}

func TestLimitSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, withLimits(t, "subscribe-calls=1"))
		defer n.stop()
		n.create("orders", 2)
		c := n.consumer("orders", "c")
		n.subscribe(c, "0", fromStart).events.Close()
		n.subscribe(c, "1", fromStart).events.Close()
		n.subscribe(n.consumer("orders", "d"), "0", fromStart).events.Close()
		n.notSubscribed(c, "0", fromStart, codeLimit, "Rate exceeded for consumer c and shard "+
			"shardId-000000000000 in stream orders under account 000000000000.")
		time.Sleep(time.Second)
		n.notSubscribed(c, "0", fromStart, codeInUse, "")
		time.Sleep(5 * time.Second)
		n.subscribe(c, "0", fromStart).events.Close()
	})
}
