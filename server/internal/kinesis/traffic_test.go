package kinesis

import (
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/wire"
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

		three := `{"StreamName":"orders","Records":[{"PartitionKey":"key","Data":"MTIz"},` +
			`{"PartitionKey":"key","Data":"MTIz"},{"PartitionKey":"key","Data":"MTIz"}]}`
		ctx := withFaults(n.ctx, fault.Decision{Records: []fault.RecordFault{
			{Number: 1}, {Number: 3, Throttled: true},
		}})
		_, err := n.raw(ctx, "PutRecords", three)
		n.must(err)
		want := Activity{
			OpenShards: 2, RecordsIn: 2, BytesIn: 14, RecordsThrottled: 1, RecordsFailed: 1,
		}
		n.wantActivity("one of three", want)
		_, err = n.came("PutRecords", "late", wire.Origin{Expires: time.Unix(1, 0)})
		n.must(err)
		want.RecordsFailed = 2
		n.wantActivity("one that came late", want)
		n.refused("PutRecords", m{"StreamName": "none", "Records": []m{
			{"PartitionKey": "key", "Data": []byte("1")},
		}}, "ResourceNotFoundException", "none")

		n.call("IncreaseStreamRetentionPeriod", m{"StreamName": "orders", "RetentionPeriodHours": 48})
		n.refused("PutRecord", m{"StreamName": "none", "PartitionKey": "key", "Data": []byte("1")},
			"ResourceNotFoundException", "none")
		n.wantActivity("other settings", want)

		n.drain("orders", shard)
		want.RecordsOut, want.BytesOut = 2, 14
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
