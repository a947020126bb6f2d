package kinesis

import (
	"fmt"
	"testing"

	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/keyspace"
)

func TestSplitAndMerge(t *testing.T) {
	n := newNode(t)
	n.create("orders", 2)
	half := keyspace.Uniform(2)[1].Start
	n.call("SplitShard", m{
		"StreamName": "orders", "ShardToSplit": "shardId-000000000001",
		"NewStartingHashKey": half.Add(keyspace.Key{Lo: 2}).String(),
	})
	n.call("MergeShards", m{"StreamName": "orders", "ShardToMerge": "0", "AdjacentShardToMerge": "2"})
	shards := n.list("orders")
	var got []string
	for _, sh := range shards {
		state := "open"
		if sh.SequenceNumberRange.EndingSequenceNumber != "" {
			state = "closed"
		}
		got = append(got, fmt.Sprintf("%s %s (%s, %s)", sh.ShardId[18:], state,
			tail(sh.ParentShardId), tail(sh.AdjacentParentShardId)))
	}
	want := "[00 closed (, ) 01 closed (, ) 02 closed (01, ) 03 open (01, ) 04 open (00, 02)]"
	if fmt.Sprint(got) != want {
		t.Errorf("the shards are %s, want %s", got, want)
	}
	r := shards[4].HashKeyRange
	if r.StartingHashKey != "0" || r.EndingHashKey != half.Add(keyspace.Key{Lo: 1}).String() {
		t.Errorf("the merged shard has %v", r)
	}
}

func tail(id string) string {
	if id == "" {
		return ""
	}
	return id[18:]
}

// A shard id that no shard can have is refused before an unknown stream, and a possible one after.
func TestReshardImpossibleShard(t *testing.T) {
	n := newNode(t)
	for _, id := range []string{"2147483648", "shardId-002147483648", "ABKLFD8", "2.14E4"} {
		want := "Could not find shard " + id + " in stream orders under account 000000000000."
		n.refused("SplitShard", m{
			"StreamName": "orders", "ShardToSplit": id, "NewStartingHashKey": "5",
		}, codeNotFound, want)
		for _, pair := range [][2]string{{"0", id}, {id, "0"}} {
			n.refused("MergeShards", m{
				"StreamName": "orders", "ShardToMerge": pair[0], "AdjacentShardToMerge": pair[1],
			}, codeNotFound, want)
		}
	}
	for _, id := range []string{"2147483647", "any-2147483647", "-00002147483647"} {
		n.refused("SplitShard", m{
			"StreamName": "orders", "ShardToSplit": id, "NewStartingHashKey": "5",
		}, codeNotFound, "Stream orders under account 000000000000 not found.")
		n.refused("MergeShards", m{
			"StreamName": "orders", "ShardToMerge": id, "AdjacentShardToMerge": id,
		}, codeNotFound, "Stream orders under account 000000000000 not found.")
	}
}

func TestReshardErrors(t *testing.T) {
	n := newNode(t)
	n.create("orders", 3)
	ranges := keyspace.Uniform(3)
	split := func(shard, key string) m {
		return m{"StreamName": "orders", "ShardToSplit": shard, "NewStartingHashKey": key}
	}
	merge := func(a, b string) m {
		return m{"StreamName": "orders", "ShardToMerge": a, "AdjacentShardToMerge": b}
	}
	inside := func(i int, offset uint64) string {
		return ranges[i].Start.Add(keyspace.Key{Lo: offset}).String()
	}
	for _, key := range []string{"0", inside(1, 0), inside(1, 1), ranges[1].End.String(), inside(2, 9)} {
		n.refused("SplitShard", split("1", key), codeInvalid, "NewStartingHashKey "+key+
			" used in SplitShard() on shard shardId-000000000001 in stream orders under account "+
			"000000000000 is not both greater than one plus the shard's StartingHashKey "+
			ranges[1].Start.String()+" and less than the shard's EndingHashKey "+
			ranges[1].End.String()+".")
	}
	n.refused("SplitShard", split("9", "5"), codeNotFound,
		"Could not find shard shardId-000000000009 in stream orders under account 000000000000.")
	n.refused("SplitShard", split("x-y", "5"), codeNotFound, "Could not find shard x-y in stream")
	n.refused("SplitShard", split("0", "340282366920938463463374607431768211456"), codeInvalid,
		"NewStartingHashKey")
	for _, pair := range [][2]string{{"0", "2"}, {"1", "1"}, {"1", "0"}} {
		n.refused("MergeShards", merge(pair[0], pair[1]), codeInvalid,
			fmt.Sprintf("Shards shardId-00000000000%s and shardId-00000000000%s in stream orders under "+
				"account 000000000000 are not an adjacent pair of shards eligible for merging",
				pair[0], pair[1]))
	}
	n.call("SplitShard", split("1", inside(1, 2)))
	closed := "Shard shardId-000000000001 in stream orders under account 000000000000 has already " +
		"been merged or split, and thus is not eligible for merging or splitting."
	n.refused("SplitShard", split("1", inside(1, 9)), codeInvalid, closed)
	n.refused("MergeShards", merge("0", "1"), codeInvalid, closed)
	if got := len(n.list("orders")); got != 5 {
		t.Errorf("there are %d shards, want 5: none of a refused request", got)
	}
}

// After several reshards within one millisecond, every child's numbers are above all of its
// parents', over all generations.
func TestReshardNumbers(t *testing.T) {
	n := newNode(t, at(newTestClock()))
	n.create("orders", 1)
	shard := "0"
	last := ""
	for i := range 40 {
		for range 2 {
			out := n.call("PutRecord", m{
				"StreamName": "orders", "PartitionKey": "k", "Data": "",
				"ExplicitHashKey": "5",
			})
			if number := out["SequenceNumber"].(string); number <= last || out["ShardId"] != longID(shard) {
				t.Fatalf("round %d: %v follows %s", i, out, last)
			}
			last = out["SequenceNumber"].(string)
		}
		shards := n.list("orders")
		next := fmt.Sprint(len(shards))
		if i%2 == 0 {
			n.call("SplitShard", m{"StreamName": "orders", "ShardToSplit": shard, "NewStartingHashKey": "99"})
		} else {
			n.call("MergeShards", m{
				"StreamName": "orders", "ShardToMerge": shard,
				"AdjacentShardToMerge": fmt.Sprint(len(shards) - 1),
			})
		}
		shard = next
	}
	checkShape(t, n.list("orders"))
}

func longID(id string) string {
	index, _ := shardid.Parse(id)
	return shardid.Of(index)
}

// checkShape checks the invariants of a stream's shards: the open ones tile the key space, closed
// ones have their children, and numbers grow from parents to children.
func checkShape(t testing.TB, shards []listed) {
	t.Helper()
	byID := map[string]listed{}
	children := map[string]int{}
	var open []keyspace.Range
	for _, sh := range shards {
		byID[sh.ShardId] = sh
		start, err1 := keyspace.Parse(sh.HashKeyRange.StartingHashKey)
		end, err2 := keyspace.Parse(sh.HashKeyRange.EndingHashKey)
		if err1 != nil || err2 != nil {
			t.Fatalf("%s has the range %v", sh.ShardId, sh.HashKeyRange)
		}
		if sh.SequenceNumberRange.EndingSequenceNumber == "" {
			open = append(open, keyspace.Range{Start: start, End: end})
		}
		for _, id := range []string{sh.ParentShardId, sh.AdjacentParentShardId} {
			if id == "" {
				continue
			}
			children[id]++
			end := byID[id].SequenceNumberRange.EndingSequenceNumber
			if end == "" || end >= sh.SequenceNumberRange.StartingSequenceNumber {
				t.Fatalf("%s starts at %s, its parent %s ends at %s", sh.ShardId,
					sh.SequenceNumberRange.StartingSequenceNumber, id, end)
			}
		}
	}
	if err := keyspace.Tiles(open); err != nil {
		t.Fatal(err)
	}
	for _, sh := range shards {
		closed := sh.SequenceNumberRange.EndingSequenceNumber != ""
		if closed != (children[sh.ShardId] > 0) {
			t.Fatalf("%s is closed: %v, with %d children", sh.ShardId, closed, children[sh.ShardId])
		}
	}
}
