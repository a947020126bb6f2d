package kinesis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

func TestCreateAndDescribe(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.call("CreateStream", m{
		"StreamName": "orders", "ShardCount": 3, "Tags": m{"team": "a"},
		"MaxRecordSizeInKiB": 2048, "StreamModeDetails": m{"StreamMode": "PROVISIONED"},
	})
	n.refused("CreateStream", m{"StreamName": "orders", "ShardCount": 1}, codeInUse,
		"Stream orders under account 000000000000 already exists.")
	want := "map[ConsumerCount:0 EncryptionType:NONE " +
		"EnhancedMonitoring:[map[ShardLevelMetrics:[]]] MaxRecordSizeInKiB:2048 OpenShardCount:3 " +
		"RetentionPeriodHours:24 " +
		"StreamARN:arn:aws:kinesis:us-east-1:000000000000:stream/orders " +
		"StreamCreationTimestamp:1.7723664e+09 StreamModeDetails:map[StreamMode:PROVISIONED] " +
		"StreamName:orders StreamStatus:ACTIVE]"
	byName := n.call("DescribeStreamSummary", m{"StreamName": "orders"})["StreamDescriptionSummary"]
	if got := fmt.Sprint(byName); got != want {
		t.Errorf("the summary is\n%s\nwant\n%s", got, want)
	}
	byARN := n.call("DescribeStreamSummary", m{
		"StreamARN": "arn:aws:kinesis:us-east-1:000000000000:stream/orders", "StreamId": "ignored",
	})["StreamDescriptionSummary"]
	if fmt.Sprint(byARN) != want {
		t.Errorf("by ARN the summary is %v", byARN)
	}
	stream := n.call("DescribeStream", m{"StreamName": "orders", "Limit": 2})["StreamDescription"].(m)
	if got := len(stream["Shards"].([]any)); got != 2 || stream["HasMoreShards"] != true {
		t.Errorf("DescribeStream lists %d shards, more: %v", got, stream["HasMoreShards"])
	}
	stream = n.call("DescribeStream", m{
		"StreamName":            "orders",
		"ExclusiveStartShardId": "shardId-000000000001",
	})["StreamDescription"].(m)
	if got := len(stream["Shards"].([]any)); got != 1 || stream["HasMoreShards"] != false {
		t.Errorf("DescribeStream lists %d shards, more: %v", got, stream["HasMoreShards"])
	}
}

// Uniform ranges, as AWS prints them for three shards.
func TestCreateRanges(t *testing.T) {
	n := newNode(t)
	n.create("orders", 3)
	var got []string
	for _, sh := range n.list("orders") {
		got = append(got, sh.HashKeyRange.StartingHashKey+"-"+sh.HashKeyRange.EndingHashKey)
	}
	want := "0-113427455640312821154458202477256070484 " +
		"113427455640312821154458202477256070485-226854911280625642308916404954512140969 " +
		"226854911280625642308916404954512140970-340282366920938463463374607431768211455"
	if strings.Join(got, " ") != want {
		t.Errorf("the ranges are %s", got)
	}
}

// Without a count AWS makes an on-demand stream of four shards.
func TestCreateWithoutCount(t *testing.T) {
	n := newNode(t)
	n.call("CreateStream", m{"StreamName": "orders"})
	if got := len(n.list("orders")); got != 4 {
		t.Errorf("there are %d shards, want 4", got)
	}
	n.refused("SplitShard", m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "9"},
		codeValidation, "ON_DEMAND")
	n.refused("CreateStream",
		m{"StreamName": "more", "StreamModeDetails": m{"StreamMode": "PROVISIONED"}},
		codeInvalid, "ShardCount is required")
	n.refused("CreateStream", m{"StreamName": "more", "ShardCount": catalogue.MaxShards + 1}, codeLimit, "10000")
}

// The states last for the delay, with their permitted operations.
func TestStreamStates(t *testing.T) {
	clock := newTestClock()
	delay := func(cfg *Config) { cfg.StreamDelay = time.Second }
	n := newNode(t, at(clock), delay)
	n.create("orders", 1)
	name := m{"StreamName": "orders"}
	record := m{"StreamName": "orders", "PartitionKey": "k", "Data": []byte("x")}
	if got := n.status("orders"); got != "CREATING" {
		t.Errorf("the stream is %s", got)
	}
	n.refused("PutRecord", record, codeNotFound, "Stream orders under account")
	n.refused("ListShards", name, codeInUse, "not ACTIVE, instead in state CREATING")
	n.create("unborn", 1)
	n.call("DeleteStream", m{"StreamName": "unborn"})
	if got := n.status("unborn"); got != "DELETING" {
		t.Errorf("the stream that was deleted while CREATING is %s", got)
	}
	n.refused("SplitShard", m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "9"},
		codeInUse, "CREATING")
	clock.advance(time.Second)
	if got := n.status("orders"); got != "ACTIVE" {
		t.Errorf("the stream is %s", got)
	}
	n.call("PutRecord", record)
	n.call("SplitShard", m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "9"})
	if got := n.status("orders"); got != "UPDATING" {
		t.Errorf("the stream is %s", got)
	}
	n.call("PutRecord", record)
	n.refused("SplitShard", m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "5"},
		codeInUse, "Stream orders under account 000000000000 not ACTIVE, instead in state UPDATING")
	n.refused("DeleteStream", name, codeInUse, "instead in state UPDATING")
	clock.advance(time.Second)
	n.settle()
	n.call("DeleteStream", name)
	if got := n.status("orders"); got != "DELETING" {
		t.Errorf("the stream is %s", got)
	}
	n.refused("CreateStream", m{"StreamName": "orders", "ShardCount": 1}, codeInUse, "already exists")
	n.refused("PutRecord", record, codeNotFound, "Stream orders under account")
	if records, _ := n.drain("orders", "0"); len(records) != 2 {
		t.Errorf("a stream that is being deleted shows %d records", len(records))
	}
	iterator := n.iterator("orders", "0", "TRIM_HORIZON")
	clock.advance(time.Second)
	n.refused("DescribeStreamSummary", name, codeNotFound, "Stream orders under account")
	n.refused("GetRecords", m{"ShardIterator": iterator}, codeNotFound,
		"Shard shardId-000000000000 in stream orders under account 000000000000 does not exist")
}

// A new stream under a deleted one's name inherits nothing from it. Everything that names the old
// one is refused, even if the clock did not advance.
func TestRecreate(t *testing.T) {
	clock := newTestClock()
	clock.advance(5 * time.Millisecond) // in whole seconds both would be created at once
	n := newNode(t, at(clock))
	n.create("orders", 1)
	_, number := n.put("orders", "k", "old")
	iterator := n.iterator("orders", "0", "TRIM_HORIZON")
	summary := n.call("DescribeStreamSummary", m{"StreamName": "orders"})["StreamDescriptionSummary"]
	created := summary.(m)["StreamCreationTimestamp"]
	n.call("DeleteStream", m{"StreamName": "orders"})
	n.refused("PutRecord", m{"StreamName": "orders", "PartitionKey": "k", "Data": ""}, codeNotFound, "")
	n.create("orders", 1)
	n.refused("GetRecords", m{"ShardIterator": iterator}, codeNotFound, "does not exist")
	n.refused("GetShardIterator", m{
		"StreamName": "orders", "ShardId": "0",
		"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": number,
	}, codeInvalid,
		"is invalid because it did not come from this stream.")
	n.refused("ListShards", m{"StreamName": "orders", "StreamCreationTimestamp": created},
		codeNotFound, "Stream orders")
	if records, _ := n.drain("orders", "0"); len(records) != 0 {
		t.Errorf("the new stream holds %v", records)
	}
	if _, next := n.put("orders", "k", "new"); next <= number {
		t.Errorf("the new stream's number %s is not above the old one's %s", next, number)
	}
	n.stop()
	n = startNode(t, n.fs, at(clock))
	if records, _ := n.drain("orders", "0"); len(records) != 1 || string(records[0].Data) != "new" {
		t.Errorf("after a restart the new stream holds %v", records)
	}
}

func TestListStreams(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	for _, name := range []string{"d", "b", "a", "c", "e"} {
		n.create(name, 1)
	}
	var pages []string
	in := m{"Limit": 2}
	for {
		out := n.call("ListStreams", in)
		pages = append(pages, fmt.Sprint(out["StreamNames"]))
		if out["HasMoreStreams"] != true {
			break
		}
		in = m{"Limit": 2, "NextToken": out["NextToken"]}
	}
	if got := fmt.Sprint(pages); got != "[[a b] [c d] [e]]" {
		t.Errorf("the pages are %s", got)
	}
	out := n.call("ListStreams", m{"ExclusiveStartStreamName": "bb"})
	if got := fmt.Sprint(out["StreamNames"]); got != "[c d e]" {
		t.Errorf("after bb follow %s", got)
	}
	summary := out["StreamSummaries"].([]any)[0].(m)
	if summary["StreamStatus"] != "ACTIVE" ||
		summary["StreamARN"] != "arn:aws:kinesis:us-east-1:000000000000:stream/c" {
		t.Errorf("the summary is %v", summary)
	}
	clock.advance(301 * time.Second)
	n.refused("ListStreams", in, codeExpiredToken, "")
	n.refused("ListStreams", m{"NextToken": "AAAA"}, codeInvalid, "NextToken")
}

func TestRetentionPeriod(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 1)
	in := func(hours int) m { return m{"StreamName": "orders", "RetentionPeriodHours": hours} }
	n.call("IncreaseStreamRetentionPeriod", in(24))
	n.call("IncreaseStreamRetentionPeriod", in(48))
	n.refused("IncreaseStreamRetentionPeriod", in(47), codeInvalid,
		"Requested retention period (47 hours) for stream orders can not be shorter than existing "+
			"retention period (48 hours). Use DecreaseRetentionPeriod API.")
	n.refused("IncreaseStreamRetentionPeriod", in(8761), codeInvalid, "Maximum allowed")
	n.refused("DecreaseStreamRetentionPeriod", in(23), codeInvalid, "Minimum allowed")
	n.refused("DecreaseStreamRetentionPeriod", in(49), codeInvalid, "can not be longer")
	n.put("orders", "k", "old")
	clock.advance(25 * time.Hour)
	n.put("orders", "k", "new")
	iterator := n.iterator("orders", "0", "TRIM_HORIZON")
	if got := n.get(iterator, 0).data(); got != "old new" {
		t.Errorf("the shard holds %q", got)
	}
	n.call("DecreaseStreamRetentionPeriod", in(24)) // trims at once
	if got := n.get(n.iterator("orders", "0", "TRIM_HORIZON"), 0).data(); got != "new" {
		t.Errorf("after the decrease the shard holds %q", got)
	}
	n.call("IncreaseStreamRetentionPeriod", in(8760)) // brings nothing back
	if got := n.get(n.iterator("orders", "0", "TRIM_HORIZON"), 0).data(); got != "new" {
		t.Errorf("after the increase the shard holds %q", got)
	}
}

// Closed shards go with their data, and a longer period does not bring them back.
func TestClosedShardsExpire(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 1)
	n.put("orders", "k", "old")
	n.call("SplitShard", m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "9"})
	iterator := n.iterator("orders", "0", "TRIM_HORIZON")
	clock.advance(24 * time.Hour)
	if got := shardIDs(n.list("orders")); got != ". 1. 2." {
		t.Errorf("within its retention period the parent is missing: %s", got)
	}
	clock.advance(time.Millisecond)
	gone := func() {
		n.t.Helper()
		if got := shardIDs(n.list("orders")); got != "1. 2." {
			t.Errorf("after its retention period there are %s", got)
		}
		n.refused("GetShardIterator", m{
			"StreamName": "orders", "ShardId": "0",
			"ShardIteratorType": "LATEST",
		}, codeNotFound, "does not exist")
	}
	gone() // before anything has removed it
	n.call("IncreaseStreamRetentionPeriod", m{"StreamName": "orders", "RetentionPeriodHours": 48})
	gone()
	n.refused("GetRecords", m{"ShardIterator": iterator}, codeExpired, "Iterator expired.")
	if parent := n.list("orders")[0].ParentShardId; parent != "shardId-000000000000" {
		t.Errorf("the child's parent is %q", parent)
	}
	n.stop()
	n = startNode(t, n.fs, at(clock))
	if got := shardIDs(n.list("orders")); got != "1. 2." {
		t.Errorf("after a restart there are %s", got)
	}
}

// The sweeper removes expired data by itself, in virtual time.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, func(cfg *Config) { cfg.StreamDelay = time.Second })
		n.create("orders", 1)
		n.create("gone", 2)
		time.Sleep(time.Second)
		n.put("orders", "k", "old")
		n.put("gone", "k", "old")
		n.call("SplitShard", m{"StreamName": "orders", "ShardToSplit": "0", "NewStartingHashKey": "9"})
		n.put("orders", "k", "child")
		n.call("DeleteStream", m{"StreamName": "gone"})
		time.Sleep(2 * time.Minute)
		if got := len(n.streams.all()); got != 1 {
			t.Errorf("%d streams are left after the deletion", got)
		}
		if n.shards.Shard(2) != nil || n.shards.Shard(3) != nil {
			t.Error("the deleted stream's records are still there")
		}
		time.Sleep(24 * time.Hour)
		n.put("orders", "k", "new")
		if got := n.streams.all()[0].Shards; len(got) != 2 {
			t.Errorf("%d shards are left, want the two children", len(got))
		}
		if n.shards.Shard(1) != nil {
			t.Error("the expired shard's records are still there")
		}
		if got := n.get(n.iterator("orders", "2", "TRIM_HORIZON"), 0).data(); got != "new" {
			t.Errorf("the child holds %q", got)
		}
		n.stop()
	})
}

func TestEnsureStream(t *testing.T) {
	n := newNode(t, func(cfg *Config) { cfg.StreamDelay = time.Hour })
	n.must(n.EnsureStream(t.Context(), here, "orders", 2))
	if got := n.status("orders"); got != "ACTIVE" {
		t.Errorf("the stream is %s", got)
	}
	n.put("orders", "k", "x")
	n.must(n.EnsureStream(t.Context(), here, "orders", 5))
	if got := len(n.list("orders")); got != 2 {
		t.Errorf("there are %d shards, want 2", got)
	}
	for name, shards := range map[string]int{"bad name": 1, "none": 0, "many": catalogue.MaxShards + 1} {
		if err := n.EnsureStream(t.Context(), here, name, shards); err == nil {
			t.Errorf("EnsureStream(%s, %d) makes a stream", name, shards)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.EnsureStream(ctx, here, "other", 1); err == nil {
		t.Error("a cancelled EnsureStream makes a stream")
	}
}
