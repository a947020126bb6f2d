package kinesis

import (
	"fmt"
	"testing"
	"time"
)

// The stream's life: shards 0 and 1 from 0 h on; at 10 h, 0 is split into 2 and 3; at 20 h,
// 3 and 1 are merged into 4; asked at 30 h, so the horizon is at 6 h.
func TestShardFilters(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 2)
	clock.advance(10 * time.Hour)
	n.call("SplitShard", m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "77"})
	clock.advance(10 * time.Hour)
	n.call("MergeShards", m{"StreamName": "orders", "ShardToMerge": "3", "AdjacentShardToMerge": "1"})
	clock.advance(10 * time.Hour)
	hours := func(h float64) float64 { return float64(newTestClock().ms.Load())/1000 + 3600*h }
	filter := func(kind string, more ...any) m {
		f := m{"Type": kind}
		for i := 0; i < len(more); i += 2 {
			f[more[i].(string)] = more[i+1]
		}
		return f
	}
	for _, c := range []struct {
		filter m
		want   string
	}{
		{filter("AT_LATEST"), "2. 4."},
		{filter("AT_TRIM_HORIZON"), ". 1."},
		{filter("FROM_TRIM_HORIZON"), ". 1. 2. 3. 4."},
		{filter("AFTER_SHARD_ID", "ShardId", "shardId-000000000002"), "3. 4."},
		{filter("AT_TIMESTAMP", "Timestamp", hours(5)), ". 1."}, // before the horizon: at it
		{filter("AT_TIMESTAMP", "Timestamp", hours(15)), "1. 2. 3."},
		{filter("AT_TIMESTAMP", "Timestamp", hours(10)), ". 1. 2. 3."}, // the moment of the split
		{filter("AT_TIMESTAMP", "Timestamp", hours(25)), "2. 4."},
		{filter("FROM_TIMESTAMP", "Timestamp", hours(5)), ". 1. 2. 3. 4."},
		{filter("FROM_TIMESTAMP", "Timestamp", hours(15)), "1. 2. 3. 4."},
		{filter("FROM_TIMESTAMP", "Timestamp", hours(25)), "2. 4."},
	} {
		if got := shardIDs(n.list("orders", "ShardFilter", c.filter)); got != c.want {
			t.Errorf("%v lists %s, want %s", c.filter, got, c.want)
		}
	}
	for _, f := range []m{
		filter("AFTER_SHARD_ID"), filter("AT_LATEST", "ShardId", "shardId-000000000002"),
		filter("AT_TIMESTAMP"), filter("AT_LATEST", "Timestamp", 1),
	} {
		n.refused("ListShards", m{"StreamName": "orders", "ShardFilter": f}, codeInvalid, "ShardFilter")
	}
	n.refused("ListShards", m{"StreamName": "orders", "ShardFilter": m{}}, codeValidation,
		"Value null at 'shardFilter.type'")
	n.refused("ListShards", m{"StreamName": "orders", "ShardFilter": filter("NEVER")}, codeValidation,
		"enum value set")
}

func TestListShardsPages(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 5)
	var pages []string
	in := m{"StreamName": "orders", "MaxResults": 2, "ShardFilter": m{"Type": "AT_LATEST"}}
	for {
		out := n.call("ListShards", in)
		var ids []string
		for _, sh := range out["Shards"].([]any) {
			ids = append(ids, sh.(m)["ShardId"].(string)[18:])
		}
		pages = append(pages, fmt.Sprint(ids))
		if out["NextToken"] == nil {
			break
		}
		in = m{"NextToken": out["NextToken"], "MaxResults": 2}
		if len(pages) == 1 { // the token remembers the filter
			n.call("SplitShard", m{
				"StreamName": "orders", "ShardToSplit": "3",
				"NewStartingHashKey": n.list("orders")[3].HashKeyRange.StartingHashKey[:38] + "9",
			})
		}
	}
	if got := fmt.Sprint(pages); got != "[[00 01] [02 04] [05 06]]" {
		t.Errorf("the pages are %s", got)
	}
	n.refused("ListShards", m{"NextToken": in["NextToken"], "StreamName": "orders"}, codeInvalid,
		"NextToken and StreamName cannot be provided together.")
	n.refused("ListShards", m{"NextToken": in["NextToken"], "ShardFilter": m{"Type": "AT_LATEST"}},
		codeInvalid, "NextToken and ShardFilter cannot be provided together.")
	n.refused("ListShards", m{
		"NextToken": in["NextToken"],
		"StreamARN": "arn:aws:kinesis:us-east-1:000000000000:stream/orders",
	}, codeInvalid, "NextToken and StreamARN cannot be provided together.")
	n.refused("ListShards", m{}, codeInvalid, "Either NextToken or StreamName should be provided.")
	n.refused("ListShards", m{"NextToken": "x"}, codeInvalid, "NextToken")
	clock.advance(301 * time.Second)
	n.refused("ListShards", in, codeExpiredToken, "")
	if got := shardIDs(n.list("orders", "ExclusiveStartShardId", "shardId-000000000004")); got != "5. 6." {
		t.Errorf("after shard 4 follow %s", got)
	}
}

// StreamCreationTimestamp distinguishes streams of one name, in ms or in whole seconds.
func TestListShardsCreation(t *testing.T) {
	clock := newTestClock()
	clock.advance(123 * time.Millisecond)
	n := newNode(t, at(clock))
	n.create("orders", 1)
	created := float64(clock.ms.Load()) / 1000
	n.list("orders", "StreamCreationTimestamp", created)
	n.list("orders", "StreamCreationTimestamp", float64(int64(created)))
	n.refused("ListShards", m{"StreamName": "orders", "StreamCreationTimestamp": created + 1},
		codeNotFound, "Stream orders under account 000000000000 not found.")
}
