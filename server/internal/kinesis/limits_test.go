package kinesis

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/limit"
)

func limits(t testing.TB, spec string) *limit.Plan {
	t.Helper()
	plan, err := limit.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func withLimits(t testing.TB, spec string) func(*Config) {
	return func(cfg *Config) { cfg.Limits = limits(t, spec) }
}

// limitedNode has limits and a clock that the test moves.
func limitedNode(t testing.TB, spec string) (*node, *testClock) {
	clock := newTestClock()
	return newNode(t, at(clock), withLimits(t, spec)), clock
}

// record is an entry of PutRecords for the i-th of n equal shards.
func record(i, n, size int) m {
	return m{
		"PartitionKey": "k", "Data": make([]byte, size-1),
		"ExplicitHashKey": keyspace.Uniform(n)[i].Start.String(),
	}
}

// codes returns the result of each record: the shard's number, or its error's code.
func codes(out m) string {
	var all []string
	for _, result := range out["Records"].([]any) {
		r := result.(m)
		if code, failed := r["ErrorCode"]; failed {
			all = append(all, fmt.Sprint(code))
			continue
		}
		id := r["ShardId"].(string)
		all = append(all, id[len(id)-1:])
	}
	return strings.Join(all, " ")
}

const tooFast = codeThrottled

// Records above their shard's limit fail one by one. The others are stored: those of other shards,
// and smaller ones of the same shard that still fit.
func TestLimitPutRecords(t *testing.T) {
	n, clock := limitedNode(t, "write-records=3,write-bytes=1000")
	n.create("orders", 2)
	put := func(want string, records ...m) {
		t.Helper()
		out := n.call("PutRecords", m{"StreamName": "orders", "Records": records})
		if got := codes(out); got != want {
			t.Errorf("the records became %s, want %s", got, want)
		}
		if want := float64(strings.Count(want, tooFast)); out["FailedRecordCount"] != want {
			t.Errorf("FailedRecordCount is %v, want %v", out["FailedRecordCount"], want)
		}
		for _, result := range out["Records"].([]any) {
			message, failed := result.(m)["ErrorMessage"]
			if failed && !strings.HasPrefix(message.(string), "Rate exceeded for shard shardId-0000000000") {
				t.Errorf("the message is %v", message)
			}
		}
	}
	put("0 1 "+tooFast+" 0 1 "+tooFast,
		record(0, 2, 600), record(1, 2, 1), record(0, 2, 600), record(0, 2, 400), record(1, 2, 1),
		record(0, 2, 1))
	put("1 "+tooFast, record(1, 2, 1), record(1, 2, 1))
	put(tooFast, record(0, 2, 1))
	clock.advance(500 * time.Millisecond) // room for 500 bytes, and for one record and a half
	put("0 "+tooFast, record(0, 2, 500), record(0, 2, 1))
	clock.advance(2 * time.Second)
	put("0 "+tooFast, record(0, 2, 5000), record(0, 2, 1)) // larger than any second: a burst
	clock.advance(4 * time.Second)
	put(tooFast, record(0, 2, 1))
	clock.advance(1001 * time.Millisecond)
	put("0", record(0, 2, 1))

	var stored []string
	for shard := range 2 {
		records, _ := n.drain("orders", fmt.Sprint(shard))
		stored = append(stored, fmt.Sprint(len(records)))
	}
	if got := strings.Join(stored, " "); got != "5 3" {
		t.Errorf("the shards hold %s records", got)
	}
}

func TestLimitPutRecord(t *testing.T) {
	n, clock := limitedNode(t, "off,orders/write-records=1")
	n.create("orders", 1)
	n.create("other", 1)
	put := m{"StreamName": "orders", "PartitionKey": "k", "Data": ""}
	n.call("PutRecord", put)
	n.refused("PutRecord", put, codeThrottled,
		"Rate exceeded for shard shardId-000000000000 in stream orders under account 000000000000.")
	for range 5 {
		n.put("other", "k", "")
	}
	clock.advance(time.Second)
	n.call("PutRecord", put)
	// A stream of the same name is another one.
	n.call("DeleteStream", m{"StreamName": "orders"})
	n.create("orders", 1)
	n.call("PutRecord", put)
	n.refused("PutRecord", put, codeThrottled, "")
	n.SetLimits(nil)
	n.call("PutRecord", put)
}

func TestLimitReads(t *testing.T) {
	n, clock := limitedNode(t, "read-calls=3,iterator-calls=2,read-bytes=2MiB")
	n.create("orders", 2)
	it := n.iterator("orders", "0", "TRIM_HORIZON")
	n.iterator("orders", "0", "TRIM_HORIZON")
	n.refused("GetShardIterator",
		m{"StreamName": "orders", "ShardId": "0", "ShardIteratorType": "LATEST"}, codeThrottled,
		"Rate exceeded for shard shardId-000000000000 in stream orders under account 000000000000.")
	n.iterator("orders", "1", "TRIM_HORIZON")
	for range 3 {
		n.get(it, 0)
	}
	n.refused("GetRecords", m{"ShardIterator": it}, codeThrottled, "Rate exceeded for shard")
	clock.advance(time.Second)

	big := record(0, 2, 1<<20)
	for range 10 {
		n.call("PutRecords", m{"StreamName": "orders", "Records": []m{big}})
	}
	if got := len(n.get(it, 0).Records); got != 10 {
		t.Fatalf("%d records are read", got)
	}
	clock.advance(4999 * time.Millisecond)
	n.refused("GetRecords", m{"ShardIterator": it}, codeThrottled, "Rate exceeded for shard")
	clock.advance(time.Millisecond)
	if got := len(n.get(it, 1).Records); got != 1 {
		t.Fatalf("%d records are read", got)
	}
}

func TestLimitCalls(t *testing.T) {
	n, clock := limitedNode(t, "aws")
	n.create("orders", 1)
	n.create("other", 1)
	describe := m{"StreamName": "orders"}
	for range 10 {
		n.call("DescribeStream", describe)
	}
	n.refused("DescribeStream", describe, codeLimit,
		"Rate exceeded for stream orders under account 000000000000.")
	n.refused("DescribeStream", m{"StreamName": "other"}, codeLimit, "Rate exceeded for stream other")
	n.world = wire.World{Account: "111111111111", Region: "us-east-1"}
	n.refused("DescribeStream", describe, codeNotFound, "")
	n.world = here
	for range 5 {
		n.call("ListStreams", m{})
	}
	n.refused("ListStreams", m{}, codeLimit, "Rate exceeded for account 000000000000.")
	clock.advance(200 * time.Millisecond)
	n.call("ListStreams", m{})
	n.refused("ListStreams", m{}, codeLimit, "Rate exceeded")
	for range 1000 {
		n.call("ListShards", m{"StreamName": "other"})
	}
	n.refused("ListShards", m{"StreamName": "other"}, codeLimit,
		"Rate exceeded for stream other under account 000000000000.")
	n.call("ListShards", m{"StreamName": "orders"})
	n.refused("ListShards", m{"StreamName": "none"}, codeNotFound, "")
	// An invalid request gets its usual error, and does not count.
	n.refused("DescribeStreamSummary", m{"StreamName": "?"}, codeValidation, "")
}

// The limits for a day count successful calls, stream by stream, and roll.
func TestLimitScalings(t *testing.T) {
	n, clock := limitedNode(t, "aws")
	n.create("orders", 1)
	n.create("other", 1)
	for i := range 10 {
		n.refused("UpdateShardCount", scaleTo("orders", 9), codeLimit, "cannot scale up")
		n.scale("orders", 1+(i+1)%2)
		clock.advance(time.Hour)
	}
	rate := "Rate exceeded for stream orders under account 000000000000."
	n.refused("UpdateShardCount", scaleTo("orders", 2), codeLimit, rate)
	n.scale("other", 2)
	clock.advance(14*time.Hour - time.Millisecond)
	n.refused("UpdateShardCount", scaleTo("orders", 2), codeLimit, rate)
	clock.advance(time.Millisecond)
	n.scale("orders", 2)
	n.refused("UpdateShardCount", scaleTo("orders", 1), codeLimit, rate)
}

func TestQuotas(t *testing.T) {
	n, clock := limitedNode(t, "shards=10,creating-streams=2,on-demand-streams=1")
	n.streams.delay = time.Second
	n.create("a", 3)
	n.create("b", 3)
	n.refused("CreateStream", m{"StreamName": "c", "ShardCount": 1}, codeLimit,
		"CREATING state under account 000000000000 cannot be more than 2.")
	clock.advance(time.Second)
	n.refused("CreateStream", m{"StreamName": "c", "ShardCount": 5}, codeLimit, "This request "+
		"would exceed the shard limit for the account 000000000000 in us-east-1. Current shard count "+
		"for the account: 6. Limit: 10. Number of additional shards that would have resulted from "+
		"this request: 5.")
	n.scale("a", 5)
	n.refused("UpdateShardCount", scaleTo("b", 6), codeLimit, "Number of additional shards that "+
		"would have resulted from this request: 3.")
	n.create("c", 2)
	n.refused("SplitShard", m{"StreamName": "b", "ShardToSplit": "0", "NewStartingHashKey": "9"},
		codeLimit, "Current shard count for the account: 10. Limit: 10.")
	clock.advance(time.Second)
	onDemand := func(name string) m {
		return m{"StreamName": name, "StreamModeDetails": m{"StreamMode": catalogue.ModeOnDemand}}
	}
	n.call("CreateStream", onDemand("d"))
	n.refused("CreateStream", onDemand("e"), codeLimit, "Current count for the account: 1. Limit: 1.")
	n.world.Region = "eu-west-1"
	n.create("a", 10)
}

// The sweep removes meters that have filled up again.
func TestLimitsAreForgotten(t *testing.T) {
	n, clock := limitedNode(t, "aws")
	meters := func() int {
		th := n.limits.throttle.Load()
		th.mu.Lock()
		defer th.mu.Unlock()
		return len(th.mu.meters)
	}
	for i := range 5 {
		n.create(fmt.Sprint("s", i), 3)
		n.put(fmt.Sprint("s", i), "k", "one")
	}
	n.refused("DescribeStreamSummary", m{"StreamName": "none"}, codeNotFound, "")
	n.scale("s0", 6)
	if meters() < 10 {
		t.Fatalf("there are %d meters", meters())
	}
	n.sweeper.sweep(n.ctx)
	if meters() < 10 {
		t.Fatal("the sweep has taken meters that count")
	}
	clock.advance(time.Minute)
	n.sweeper.sweep(n.ctx)
	if got := meters(); got != 1 {
		t.Errorf("%d meters are left, want the one of the day", got)
	}
	clock.advance(24 * time.Hour)
	n.sweeper.sweep(n.ctx)
	if got := meters(); got != 0 {
		t.Errorf("%d meters are left", got)
	}
}

// Events for a consumer wait, so that they keep to its rate; each consumer has its own.
func TestPaceFanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, withLimits(t, "fan-out-bytes=1000"))
		defer n.stop()
		n.create("orders", 1)
		st := n.streams.peek(here, "orders", n.streams.clock.read())
		pace := func(consumer string, bytes int, want time.Duration) {
			t.Helper()
			if got := n.limits.fanOut(st, st.Shards[0], consumer, bytes); got != want {
				t.Errorf("after %d bytes %s pauses %v, want %v", bytes, consumer, got, want)
			}
		}
		pace("a", 1000, 0)
		pace("b", 1000, 0)
		pace("a", 0, 0)
		pace("a", 500, 500*time.Millisecond)
		time.Sleep(500 * time.Millisecond)
		pace("a", 2000, 2*time.Second)
		pace("b", 500, 0)
		n.SetLimits(nil)
		pace("a", 5000, 0)
	})
}
