package kinesis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
)

func TestPutRoutes(t *testing.T) {
	n := newNode(t)
	n.create("orders", 4)
	ranges := keyspace.Uniform(4)
	for i := range 200 {
		key := fmt.Sprint("key-", i)
		shard, _ := n.put("orders", key, key)
		index, _ := shardid.Parse(shard)
		if !ranges[index].Contains(keyspace.Of(key)) {
			t.Fatalf("%s is in %s", key, shard)
		}
	}
	for i, r := range ranges {
		for _, k := range []keyspace.Key{r.Start, r.End} {
			out := n.call("PutRecord", m{
				"StreamName": "orders", "PartitionKey": "any", "Data": "",
				"ExplicitHashKey": k.String(),
			})
			if out["ShardId"] != shardid.Of(uint32(i)) {
				t.Errorf("hash key %s is in %s, want shard %d", k, out["ShardId"], i)
			}
		}
	}
}

// A batch is stored in the request's order within each shard, and the answer has the same order.
func TestPutRecords(t *testing.T) {
	n := newNode(t)
	n.create("orders", 3)
	var records []m
	for i := range 60 {
		records = append(records, m{"PartitionKey": fmt.Sprint("k", i%7), "Data": []byte(fmt.Sprint(i))})
	}
	out := n.call("PutRecords", m{"StreamName": "orders", "Records": records})
	if out["FailedRecordCount"] != 0.0 || len(out) != 2 {
		t.Fatalf("the answer is %v", out)
	}
	results := out["Records"].([]any)
	read := map[string]string{} // number -> data
	for i := range 3 {
		got, _ := n.drain("orders", fmt.Sprint(i))
		last := -1
		for _, r := range got {
			var at int
			if _, err := fmt.Sscan(string(r.Data), &at); err != nil || at <= last {
				t.Errorf("shard %d has %s after %d", i, r.Data, last)
			}
			last = at
			read[fmt.Sprint(shardid.Of(uint32(i)), r.SequenceNumber)] = string(r.Data)
		}
	}
	for i, result := range results {
		r := result.(m)
		if got := read[fmt.Sprint(r["ShardId"], r["SequenceNumber"])]; got != fmt.Sprint(i) {
			t.Errorf("result %d %v names the record %q", i, r, got)
		}
	}
	if len(read) != 60 {
		t.Errorf("%d records were read", len(read))
	}
}

func TestPutFaults(t *testing.T) {
	n := newNode(t)
	n.create("orders", 2)
	ctx := withFaults(n.ctx, fault.Decision{Records: []fault.RecordFault{
		{Number: 2}, {Number: 3, Throttled: true},
	}})
	body := `{"StreamName":"orders","Records":[{"PartitionKey":"a","Data":"MQ=="},` +
		`{"PartitionKey":"a","Data":"Mg=="},{"PartitionKey":"a","Data":"Mw=="},` +
		`{"PartitionKey":"a","Data":"NA=="}]}`
	out, err := n.raw(ctx, "PutRecords", body)
	n.must(err)
	results := out["Records"].([]any)
	shard := results[0].(m)["ShardId"].(string)
	want := "[map[ErrorCode:InternalFailure ErrorMessage:Internal service failure.] " +
		"map[ErrorCode:ProvisionedThroughputExceededException ErrorMessage:Rate exceeded for shard " +
		shard + " in stream orders under account 000000000000.]]"
	if got := fmt.Sprint(results[1:3]); got != want || out["FailedRecordCount"] != 2.0 {
		t.Errorf("%v failed:\n%s\nwant\n%s", out["FailedRecordCount"], got, want)
	}
	if got := n.get(n.iterator("orders", shard, "TRIM_HORIZON"), 0).data(); got != "1 4" {
		t.Errorf("stored were %q", got)
	}
	ctx = withFaults(n.ctx, fault.Decision{Records: []fault.RecordFault{{Num: 1, Den: 1}}})
	out, err = n.raw(ctx, "PutRecords", body)
	n.must(err)
	if out["FailedRecordCount"] != 4.0 {
		t.Errorf("all were to fail: %v", out)
	}
}

// putDirect is PutRecords without JSON, which is slow for large records.
func (n *node) putDirect(stream string, entries ...wire.PutEntry) error {
	var in putRecordsInput
	in.StreamName, in.Records = &stream, entries
	if err := n.plans["PutRecords"].validate(&in); err != nil {
		return err
	}
	_, err := n.putRecords(n.ctx, n.world, &in)
	return err
}

func entryOf(size int) wire.PutEntry {
	key := "k"
	return wire.PutEntry{Data: make([]byte, size), PartitionKey: &key}
}

func TestPutLimits(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	n.call("CreateStream", m{"StreamName": "large", "ShardCount": 1, "MaxRecordSizeInKiB": 10240})
	const lengthLimit = "failed to satisfy constraint: Member must have length less than or equal to "
	for _, c := range []struct {
		stream     string
		sizes      []int
		code, text string // "": it is taken
	}{
		{stream: "orders", sizes: []int{1<<20 - 1}},
		{"orders", []int{1, 1 << 20}, codeInvalid, "'records.2.member.data' in a request to stream " +
			"orders under account 000000000000 has 1048577 bytes with its partition key"},
		{"orders", []int{1 << 20}, codeInvalid, "'records.1.member.data'"},
		{"orders", []int{1, 1<<20 + 1}, codeValidation, "1 validation error detected: Value " +
			"'java.nio.HeapByteBuffer[pos=0 lim=1048577 cap=1048577]' at 'records.2.member.data' " +
			lengthLimit + "1048576"},
		{stream: "large", sizes: []int{10<<20 - 1}},
		{"large", []int{10<<20 - 1, 0}, codeInvalid, "Records size exceeds 10 MB limit"},
		{"large", []int{10<<20 + 1}, codeValidation, lengthLimit + "10485760"},
		{stream: "orders", sizes: make([]int, 500)},
		{"orders", make([]int, 501), codeValidation, "at 'records' " + lengthLimit + "500"},
		{"none", []int{0}, codeNotFound, "Stream none under account 000000000000 not found."},
	} {
		var entries []wire.PutEntry
		for _, size := range c.sizes {
			entries = append(entries, entryOf(size))
		}
		err := n.putDirect(c.stream, entries...)
		if c.code == "" {
			n.must(err)
		} else {
			wantError(t, err, c.code, c.text)
		}
	}
	n.refused("PutRecord", m{"StreamName": "orders", "PartitionKey": "k", "Data": make([]byte, 1<<20)},
		codeInvalid, "The record at 'data' in a request to stream orders")
	if oldest, next := n.shards.Shard(1).Bounds(); next-oldest != 501 {
		t.Errorf("%d records are stored, want 501: none of a refused request", next-oldest)
	}
}

func TestSequenceNumberForOrdering(t *testing.T) {
	clock := newTestClock()
	n := newNode(t, at(clock))
	n.create("orders", 1)
	in := m{"StreamName": "orders", "PartitionKey": "k", "Data": "", "ExplicitHashKey": "7"}
	last := ""
	for i := range 20 {
		out := n.call("PutRecord", in)
		number := out["SequenceNumber"].(string)
		if number <= last {
			t.Fatalf("%s follows %s", number, last)
		}
		last = number
		in["SequenceNumberForOrdering"] = number
		if i%5 == 4 { // in the same second
			n.call("SplitShard", m{
				"StreamName": "orders", "ShardToSplit": out["ShardId"],
				"NewStartingHashKey": keyspace.Max().Sub(keyspace.Key{Lo: uint64(100 + i)}).String(),
			})
		}
	}
	future := sequenceNumber{created: 1, index: 1, arrival: clock.ms.Load()/1000 + 1}.String()
	for _, number := range []string{future, "3", "49591109616310805454912940618220665305004298836394377219"} {
		in["SequenceNumberForOrdering"] = number
		if number == "3" {
			n.call("PutRecord", in) // of an old version, which AWS takes
			continue
		}
		n.refused("PutRecord", in, codeInvalid, "ExclusiveMinimumSequenceNumber "+number+
			" used in PutRecord on stream orders under account 000000000000 is invalid.")
	}
}

func TestPutKeys(t *testing.T) {
	n := newNode(t)
	n.create("orders", 1)
	keys := []string{"k", `quo"te\`, "new\nline", "ünïcödé", "日本", strings.Repeat("é", 256), "<&>", "\u2028\x7f"}
	for _, key := range keys {
		n.put("orders", key, key)
	}
	got, _ := n.drain("orders", "0")
	for i, r := range got {
		if r.PartitionKey != keys[i] || string(r.Data) != keys[i] {
			t.Errorf("the key %q was read as %q", keys[i], r.PartitionKey)
		}
	}
	n.refused("PutRecord", m{"StreamName": "orders", "PartitionKey": strings.Repeat("é", 257), "Data": ""},
		codeValidation, "at 'partitionKey' failed to satisfy constraint: Member must have length less "+
			"than or equal to 256")
}
