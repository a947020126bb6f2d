package kinesis

import (
	"fmt"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

func (n *node) scale(stream string, count int) m {
	n.t.Helper()
	return n.call("UpdateShardCount", scaleTo(stream, count))
}

func scaleTo(stream string, count int) m {
	return m{"StreamName": stream, "TargetShardCount": count, "ScalingType": "UNIFORM_SCALING"}
}

// openRanges returns the ranges of the open shards, by hash key.
func (n *node) openRanges(stream string) []keyspace.Range {
	n.t.Helper()
	st := n.streams.peek(n.world, stream, n.streams.clock.read())
	var ranges []keyspace.Range
	for _, sh := range st.OpenShards() {
		ranges = append(ranges, sh.Range)
	}
	return ranges
}

func TestUpdateShardCount(t *testing.T) {
	n := newNode(t)
	n.create("orders", 2)
	changes := n.streams.catalogue.Seq()
	out := n.scale("orders", 3)
	if got := n.streams.catalogue.Seq() - changes; got != 1 {
		t.Errorf("a scaling is %d frames in the log, want one", got)
	}
	want := "map[CurrentShardCount:2 StreamARN:arn:aws:kinesis:us-east-1:000000000000:stream/orders " +
		"StreamName:orders TargetShardCount:3]"
	if fmt.Sprint(out) != want {
		t.Errorf("the answer is %v, want %s", out, want)
	}
	shards := n.list("orders")
	checkShape(t, shards)
	if !equal(n.openRanges("orders"), 3) {
		t.Errorf("two became %v", n.openRanges("orders"))
	}
	// Two bounds are new and one goes: two splits and a merge.
	var got []string
	for _, sh := range shards {
		state := "open"
		if sh.SequenceNumberRange.EndingSequenceNumber != "" {
			state = "closed"
		}
		got = append(got, fmt.Sprintf("%s %s (%s, %s)", sh.ShardId[18:], state,
			tail(sh.ParentShardId), tail(sh.AdjacentParentShardId)))
	}
	if want := "[00 closed (, ) 01 closed (, ) 02 open (00, ) 03 closed (00, ) 04 closed (01, ) " +
		"05 open (01, ) 06 open (03, 04)]"; fmt.Sprint(got) != want {
		t.Errorf("the shards are %s, want %s", got, want)
	}
	for _, count := range []int{6, 12, 7, 4, 2, 1} {
		n.scale("orders", count)
		checkShape(t, n.list("orders"))
		if !equal(n.openRanges("orders"), count) {
			t.Errorf("to %d: %v", count, n.openRanges("orders"))
		}
	}
}

func TestUpdateShardCountRules(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock), func(cfg *Config) { cfg.StreamDelay = time.Second })
	n.refused("UpdateShardCount", scaleTo("orders", 2), codeNotFound, "not found")
	n.create("orders", 5)
	n.refused("UpdateShardCount", scaleTo("orders", 6), codeInUse, "instead in state CREATING")
	clock.advance(time.Second)
	n.refused("UpdateShardCount", scaleTo("orders", 11), codeLimit, "UpdateShardCount cannot scale "+
		"up over double your current open shard count. Current open shard count: 5 Target shard "+
		"count: 11")
	n.refused("UpdateShardCount", scaleTo("orders", 2), codeLimit, "UpdateShardCount cannot scale "+
		"down below half your current open shard count. Current open shard count: 5 Target shard "+
		"count: 2")
	n.refused("UpdateShardCount", scaleTo("orders", 10_001), codeLimit,
		"cannot be greater than 10000")
	before := len(n.list("orders"))
	n.scale("orders", 5)
	if status := n.status("orders"); status != catalogue.StatusActive || len(n.list("orders")) != before {
		t.Errorf("to scale to what is there makes the stream %s", status)
	}
	n.scale("orders", 3)
	if status := n.status("orders"); status != catalogue.StatusUpdating {
		t.Errorf("a stream that is scaled is %s", status)
	}
	n.put("orders", "k", "while it is UPDATING")
	n.refused("UpdateShardCount", scaleTo("orders", 6), codeInUse, "instead in state UPDATING")
	clock.advance(time.Second - time.Millisecond)
	n.settle()
	if got := len(n.openRanges("orders")); got != 5 {
		t.Errorf("just before the end of UPDATING there are %d shards", got)
	}
	clock.advance(time.Millisecond)
	n.settle()
	n.scale("orders", 6)
	clock.advance(time.Second)
	n.settle()
	if got := n.openRanges("orders"); !equal(got, 6) {
		t.Errorf("in the end the stream has %v", got)
	}

	n.call("CreateStream", m{
		"StreamName": "any", "StreamModeDetails": m{"StreamMode": catalogue.ModeOnDemand},
	})
	clock.advance(time.Second)
	if got := len(n.list("any")); got != 4 {
		t.Errorf("an on-demand stream has %d shards, want 4", got)
	}
	for operation, in := range map[string]m{
		"UpdateShardCount": scaleTo("any", 8),
		"SplitShard":       {"StreamName": "any", "ShardToSplit": "0", "NewStartingHashKey": "9"},
		"MergeShards":      {"StreamName": "any", "ShardToMerge": "0", "AdjacentShardToMerge": "1"},
	} {
		n.refused(operation, in, codeValidation, "is in the ON_DEMAND mode, in which "+operation)
	}
}

// A restart does not change a scaled stream, records and iterators included. TestCrashes shows that
// a crash leaves all of a scaling or nothing.
func TestUpdateShardCountRestart(t *testing.T) {
	n := newNode(t)
	n.create("orders", 3)
	shard, number := n.put("orders", "k", "one")
	iterator := n.iterator("orders", shard, "TRIM_HORIZON")
	n.scale("orders", 5)
	n.put("orders", "k", "two")
	n.scale("orders", 4)
	before := fmt.Sprint(n.list("orders"))
	n.stop()
	n = startNode(t, n.fs)
	if after := fmt.Sprint(n.list("orders")); after != before {
		t.Errorf("after a restart there are\n%v\nbefore\n%v", after, before)
	}
	got := n.get(iterator, 0)
	if got.data() != "one" || got.Records[0].SequenceNumber != number || len(got.ChildShards) == 0 {
		t.Errorf("the old iterator reads %+v", got)
	}
	n.put("orders", "k", "three")
	if texts := n.walk("orders")["k"]; fmt.Sprint(texts) != "[one two three]" {
		t.Errorf("from parents to children there is %v", texts)
	}
}

// A short-lived shard is read to its end like any other: it is empty and names its children.
func TestShortLivedShards(t *testing.T) {
	n := newNode(t)
	n.create("orders", 2)
	n.scale("orders", 3)
	records, last := n.drain("orders", "3")
	if len(records) != 0 || last.NextShardIterator != "" || len(last.ChildShards) != 1 ||
		last.ChildShards[0].ShardId != longID("6") {
		t.Errorf("a short-lived shard reads %v, %+v", records, last)
	}
}

// walk returns the data of every key's records, shards after their parents.
func (n *node) walk(stream string) map[string][]string {
	n.t.Helper()
	texts, last := map[string][]string{}, map[string]string{}
	for _, sh := range n.list(stream) { // a child's id is above its parents'
		records, _ := n.drain(stream, sh.ShardId)
		for _, r := range records {
			if r.SequenceNumber <= last[r.PartitionKey] {
				n.t.Fatalf("%s of %s follows %s", r.SequenceNumber, r.PartitionKey, last[r.PartitionKey])
			}
			last[r.PartitionKey] = r.SequenceNumber
			texts[r.PartitionKey] = append(texts[r.PartitionKey], string(r.Data))
		}
	}
	return texts
}
