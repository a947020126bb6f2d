package dynamo

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// BenchmarkConditionalUpdate is the lease's heartbeat: each worker has a lease of its own, and
// every update is durable.
func BenchmarkConditionalUpdate(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) (vfs.FS, string){
		"memory": func(*testing.B) (vfs.FS, string) { return vfs.NewMem(), "data" },
		"disk":   func(b *testing.B) (vfs.FS, string) { return vfs.OS{}, b.TempDir() },
	} {
		b.Run(name, func(b *testing.B) {
			fs, dir := open(b)
			s := startService(b, wal.Config{FS: fs, Dir: dir, Logger: quiet})
			s.mustAsk(b, "CreateTable", leaseTable)
			var workers atomic.Int64
			b.SetParallelism(16)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				key := fmt.Sprintf("shardId-%012d", workers.Add(1))
				s.mustAsk(b, "PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"`+key+
					`"},"leaseOwner":{"S":"worker"},"leaseCounter":{"N":"0"},
					"checkpoint":{"S":"49590338271490256608559692538361571095921575989136588898"}}}`)
				for counter := 0; pb.Next(); counter++ {
					s.mustAsk(b, "UpdateItem", fmt.Sprintf(`{"TableName":"leases",
						"Key":{"leaseKey":{"S":%q}},
						"ConditionExpression":"leaseCounter = :seen AND leaseOwner = :me",
						"UpdateExpression":"SET leaseCounter = :next",
						"ExpressionAttributeValues":{":seen":{"N":"%d"},":next":{"N":"%d"},
						":me":{"S":"worker"}}}`, key, counter, counter+1))
				}
			})
		})
	}
}

// BenchmarkItemCall is one call at a time, in memory: the renewal of a lease as the KCL asks for
// it, by the older parameters, and the other small calls.
func BenchmarkItemCall(b *testing.B) {
	const key = `"TableName":"leases","Key":{"leaseKey":{"S":"shardId-000000000001"}}`
	for _, one := range []struct{ name, operation, body string }{
		{"renew", "UpdateItem", `{` + key + `,"Expected":{"leaseCounter":{"Value":{"N":"7"}},
			"checkpointOwner":{"Exists":false}},"AttributeUpdates":{"leaseCounter":{"Action":"PUT",
			"Value":{"N":"7"}},"throughputKBps":{"Action":"PUT","Value":{"N":"1.5"}}},
			"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}`},
		{"refused", "UpdateItem", `{` + key + `,"UpdateExpression":"SET leaseCounter = :next",
			"ConditionExpression":"leaseCounter = :next",
			"ExpressionAttributeValues":{":next":{"N":"8"}}}`},
		{"put", "PutItem", `{"TableName":"leases","Item":{"leaseKey":{"S":"shardId-000000000002"},
			"leaseOwner":{"S":"worker"},"leaseCounter":{"N":"7"},"checkpoint":{"S":"TRIM_HORIZON"},
			"parentShardId":{"SS":["shardId-000000000000"]}}}`},
		{"get", "GetItem", `{` + key + `,"ConsistentRead":true}`},
		{"delete", "DeleteItem", `{` + key + `,"ConditionExpression":"attribute_not_exists(#n)",
			"ExpressionAttributeNames":{"#n":"gone"}}`},
	} {
		b.Run(one.name, func(b *testing.B) {
			s := newService(b, vfs.NewMem(), "data")
			s.mustAsk(b, "CreateTable", leaseTable)
			s.mustAsk(b, "PutItem", `{"TableName":"leases","Item":{"leaseOwner":{"S":"worker"},
				"leaseKey":{"S":"shardId-000000000001"},"leaseCounter":{"N":"7"},
				"checkpoint":{"S":"TRIM_HORIZON"}}}`)
			request := call(one.operation, one.body)
			b.ReportAllocs()
			for b.Loop() {
				_, err := s.Serve(b.Context(), request)
				if (err != nil) != (one.name == "refused") {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkScanPage is one page of a lease table.
func BenchmarkScanPage(b *testing.B) {
	s := newService(b, vfs.NewMem(), "data")
	s.mustAsk(b, "CreateTable", leaseTable)
	for i := range 1000 {
		s.mustAsk(b, "PutItem", fmt.Sprintf(`{"TableName":"leases","Item":{
			"leaseKey":{"S":"shardId-%012d"},"leaseOwner":{"S":"worker"},"leaseCounter":{"N":"7"},
			"checkpoint":{"S":"TRIM_HORIZON"},"parentShardId":{"SS":["shardId-000000000001"]}}}`, i))
	}
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(s.mustAsk(b, "Scan", `{"TableName":"leases"}`))))
	}
}
