package kinesis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
)

// register registers a consumer and returns its ARN.
func (n *node) register(stream, name string) string {
	n.t.Helper()
	out := n.call("RegisterStreamConsumer", m{
		"StreamARN": strings.Replace(ordersARN, "orders", stream, 1), "ConsumerName": name,
	})
	return out["Consumer"].(m)["ConsumerARN"].(string)
}

// consumers lists a stream's consumers as "name STATUS"; more are further members.
func (n *node) consumers(stream string, more ...any) string {
	n.t.Helper()
	in := m{"StreamARN": strings.Replace(ordersARN, "orders", stream, 1)}
	for i := 0; i+1 < len(more); i += 2 {
		in[more[i].(string)] = more[i+1]
	}
	var lines []string
	for _, c := range n.call("ListStreamConsumers", in)["Consumers"].([]any) {
		lines = append(lines, fmt.Sprint(c.(m)["ConsumerName"], " ", c.(m)["ConsumerStatus"]))
	}
	return strings.Join(lines, ", ")
}

func TestConsumerLife(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock), func(cfg *Config) { cfg.StreamDelay = time.Second })
	n.create("orders", 1)
	in := m{"StreamARN": ordersARN, "ConsumerName": "app", "Tags": m{"team": "a"}}
	n.refused("RegisterStreamConsumer", in, codeInUse, "instead in state CREATING")
	clock.advance(time.Second)
	created := clock.ms.Load()
	first := n.call("RegisterStreamConsumer", in)["Consumer"].(m)
	arn := first["ConsumerARN"].(string)
	if want := fmt.Sprint(ordersARN, "/consumer/app:", created/1000); arn != want ||
		first["ConsumerStatus"] != "CREATING" || first["ConsumerName"] != "app" ||
		first["ConsumerCreationTimestamp"] != float64(created)/1000 {
		t.Errorf("the consumer is %v, want ARN %s", first, want)
	}
	n.refused("RegisterStreamConsumer", in, codeInUse, "already exists")
	clock.advance(time.Second)
	for _, by := range []m{
		{"ConsumerARN": arn},
		{"StreamARN": ordersARN, "ConsumerName": "app"},
		{"StreamARN": ordersARN, "ConsumerName": "app", "ConsumerARN": arn},
	} {
		d := n.call("DescribeStreamConsumer", by)["ConsumerDescription"].(m)
		if d["ConsumerARN"] != arn || d["StreamARN"] != ordersARN || d["ConsumerStatus"] != "ACTIVE" {
			t.Errorf("%v is %v", by, d)
		}
	}
	st, _, _ := n.streams.view(n.ctx, here, "orders")
	if tags := st.Consumers[0].Tags; fmt.Sprint(tags) != "map[team:a]" {
		t.Errorf("the tags are %v", tags)
	}

	n.call("DeregisterStreamConsumer", m{"StreamARN": ordersARN, "ConsumerName": "app"})
	if got := n.consumers("orders"); got != "app DELETING" {
		t.Errorf("after the deregistration there are %q", got)
	}
	n.call("DeregisterStreamConsumer", m{"ConsumerARN": arn}) // again
	n.refused("RegisterStreamConsumer", in, codeInUse, "already exists")
	clock.advance(time.Second)
	if got := n.consumers("orders"); got != "" {
		t.Errorf("after the end there are %q", got)
	}
	n.refused("DescribeStreamConsumer", m{"ConsumerARN": arn}, codeNotFound,
		"Consumer "+arn+", account 000000000000 not found.")
	n.refused("DeregisterStreamConsumer", m{"ConsumerARN": arn}, codeNotFound, "not found.")
}

// A consumer that is registered again under its name, however soon, is a new consumer, also after a
// restart.
func TestConsumerAgain(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 1)
	seen := map[string]bool{}
	last := ""
	for i := range 6 {
		other := n.register("orders", fmt.Sprint("other-", i)) // lets the gone ones be forgotten
		if !strings.HasSuffix(other, fmt.Sprint(":", clock.ms.Load()/1000)) {
			t.Errorf("a new name gets %s at %d", other, clock.ms.Load()/1000)
		}
		arn := n.register("orders", "app")
		if seen[arn] || arn <= last {
			t.Fatalf("registered again it is %s after %s", arn, last)
		}
		if last != "" {
			n.refused("DescribeStreamConsumer", m{"ConsumerARN": last}, codeNotFound, "not found.")
		}
		seen[arn], last = true, arn
		n.call("DeregisterStreamConsumer", m{"ConsumerARN": arn})
		if i == 3 {
			n.stop()
			n = startNode(t, n.fs, at(clock))
		}
	}
	clock.advance(time.Minute)
	n.register("orders", "new")
	st, _, _ := n.streams.view(n.ctx, here, "orders")
	if len(st.Consumers) != 7 {
		t.Errorf("the catalogue holds %d consumers, want the 7 that are there", len(st.Consumers))
	}
}

func TestConsumerLimit(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	for i := range maxConsumers {
		n.register("orders", fmt.Sprint("app-", i))
	}
	more := m{"StreamARN": ordersARN, "ConsumerName": "more"}
	n.refused("RegisterStreamConsumer", more, codeLimit, "20 registered consumers")
	n.call("DeregisterStreamConsumer", m{"StreamARN": ordersARN, "ConsumerName": "app-7"})
	n.call("RegisterStreamConsumer", more)
}

func TestConsumerTargets(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	arn := n.register("orders", "app")
	elsewhere := strings.Replace(arn, "us-east-1", "eu-west-1", 1)
	for _, test := range []struct {
		in         m
		code, text string
	}{
		{m{}, codeInvalid, "Either ConsumerARN or both"},
		{m{"ConsumerName": "app"}, codeInvalid, "Either ConsumerARN or both"},
		{m{"StreamARN": ordersARN}, codeInvalid, "Either ConsumerARN or both"},
		{m{"ConsumerARN": arn, "ConsumerName": "other"}, codeInvalid, "the same consumer."},
		{m{"ConsumerARN": arn, "StreamARN": ordersARN + "2"}, codeInvalid, "the same stream."},
		{m{"ConsumerARN": arn + "0"}, codeNotFound, "Consumer " + arn + "0, account"},
		{m{"ConsumerARN": elsewhere}, codeNotFound, "Consumer " + elsewhere},
		{m{"ConsumerARN": strings.Replace(arn, "orders", "none", 1)}, codeNotFound, "Consumer arn"},
		{m{"StreamARN": ordersARN, "ConsumerName": "other"}, codeNotFound, "Consumer other, account"},
		{m{"StreamARN": ordersARN + "2", "ConsumerName": "app"}, codeNotFound, "Stream orders2 under"},
	} {
		n.refused("DescribeStreamConsumer", test.in, test.code, test.text)
		n.refused("DeregisterStreamConsumer", test.in, test.code, test.text)
	}
	n.refused("RegisterStreamConsumer", m{"StreamARN": ordersARN + "2", "ConsumerName": "app"},
		codeNotFound, "Stream orders2 under account 000000000000 not found.")
}

func TestListStreamConsumers(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 1)
	n.create("other", 1)
	var want []string
	for i := range 9 {
		name := fmt.Sprint("app-", 9-i)
		n.register("orders", name)
		want = append([]string{name + " ACTIVE"}, want...)
	}
	if got := n.consumers("orders"); got != strings.Join(want, ", ") {
		t.Errorf("there are %s, want %s", got, want)
	}
	var pages []string
	in := m{"StreamARN": ordersARN, "MaxResults": 4}
	token := ""
	for {
		pages = append(pages, n.consumers("orders", "MaxResults", 4, "NextToken", in["NextToken"]))
		next := n.call("ListStreamConsumers", in)["NextToken"]
		if next == nil {
			break
		}
		token = next.(string)
		in["NextToken"] = token
	}
	if got := strings.Join(pages, ", "); len(pages) != 3 || got != strings.Join(want, ", ") {
		t.Errorf("the pages are %q", pages)
	}
	otherARN := strings.Replace(ordersARN, "orders", "other", 1)
	n.refused("ListStreamConsumers", m{"StreamARN": otherARN, "NextToken": token}, codeInvalid,
		"NextToken is not valid.")
	n.refused("ListStreamConsumers", m{
		"StreamARN": ordersARN, "NextToken": token, "StreamCreationTimestamp": 1,
	}, codeInvalid, "cannot be provided together")
	n.refused("ListStreamConsumers", m{"StreamARN": ordersARN, "StreamCreationTimestamp": 1},
		codeNotFound, "Stream orders under")
	st, _, _ := n.streams.view(n.ctx, here, "orders")
	if n.consumers("orders", "StreamCreationTimestamp", float64(st.Created)/1000) == "" {
		t.Error("the stream's own creation finds nothing")
	}
	clock.advance(pageLife*time.Millisecond + time.Millisecond)
	n.refused("ListStreamConsumers", m{"StreamARN": ordersARN, "NextToken": token},
		codeExpiredToken, "")
}

func FuzzParseConsumerARN(f *testing.F) {
	f.Add(ordersARN + "/consumer/app:1700000000")
	f.Add("arn:aws:kinesis:us-east-1:000000000000:x:stream/s/consumer/c:1")
	f.Add("arn:aws:kinesis:::stream//consumer/:")
	f.Fuzz(func(t *testing.T, arn string) {
		id, ok := parseConsumerARN(arn)
		if !ok || id.world == (wire.World{}) {
			return
		}
		// The parts of a valid ConsumerARN are in it literally.
		if !strings.HasSuffix(arn, ":stream/"+id.stream+"/consumer/"+id.name+":"+id.second) {
			t.Fatalf("%q is %+v", arn, id)
		}
	})
}
