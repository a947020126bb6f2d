package kinesis

import (
	"testing"

	"github.com/runnel-stream/runnel/internal/fault"
)

// wantActivity compares the activity of the one stream.
func (n *node) wantActivity(when string, want Activity) {
	n.t.Helper()
	want.Listed = Listed{here, "orders"}
	if all := n.Activity(); len(all) != 1 || all[0] != want {
		n.t.Errorf("%s: %+v, want %+v", when, all, want)
	}
}

// Traffic is counted once, whatever changes the stream undergoes; refused records are not counted.
func TestActivity(t *testing.T) {
	inBubble(t, func(n *node) {
		n.create("orders", 2)
		n.wantActivity("a new stream", Activity{OpenShards: 2})
		shard, _ := n.put("orders", "key", "12345")
		n.wantActivity("one record", Activity{OpenShards: 2, RecordsIn: 1, BytesIn: 8})

		ctx := withFaults(n.ctx, fault.Decision{Records: []fault.RecordFault{{Number: 1}}})
		_, err := n.raw(ctx, "PutRecords", `{"StreamName":"orders","Records":[`+
			`{"PartitionKey":"key","Data":"MTIz"},{"PartitionKey":"key","Data":"MTIz"}]}`)
		n.must(err)
		n.wantActivity("one of two", Activity{OpenShards: 2, RecordsIn: 2, BytesIn: 14})

		n.call("IncreaseStreamRetentionPeriod", m{"StreamName": "orders", "RetentionPeriodHours": 48})
		n.refused("PutRecord", m{"StreamName": "none", "PartitionKey": "key", "Data": []byte("1")},
			"ResourceNotFoundException", "none")
		n.wantActivity("other settings", Activity{OpenShards: 2, RecordsIn: 2, BytesIn: 14})

		n.drain("orders", shard)
		want := Activity{OpenShards: 2, RecordsIn: 2, BytesIn: 14, RecordsOut: 2, BytesOut: 14}
		n.wantActivity("read", want)

		first := n.subscribe(n.register("orders", "first"), shard[len(shard)-1:], fromStart)
		second := n.subscribe(n.register("orders", "second"), shard[len(shard)-1:], fromStart)
		want.Subscriptions = 2
		n.wantActivity("subscribed", want)
		first.next()
		second.next() // the same event: it is given twice
		want.RecordsOut, want.BytesOut = 6, 42
		n.wantActivity("two events", want)
		first.events.Close()
		second.events.Close()
		want.Subscriptions = 0

		n.call("MergeShards", m{
			"StreamName": "orders", "ShardToMerge": "shardId-000000000000",
			"AdjacentShardToMerge": "shardId-000000000001",
		})
		n.list("orders")
		want.OpenShards = 1
		n.wantActivity("merged", want)
		n.call("DeleteStream", m{"StreamName": "orders", "EnforceConsumerDeletion": true})
		if all := n.Activity(); len(all) != 0 {
			t.Errorf("a deleted stream: %+v", all)
		}
		n.create("orders", 1)
		n.wantActivity("of the same name", Activity{OpenShards: 1})
	})
}
