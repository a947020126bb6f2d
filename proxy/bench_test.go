package proxy_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel/runneltest"
)

// BenchmarkPutRecords measures 8 connections, to the server and through the proxy. Each call has
// 500 records of 100 bytes with different keys. Server, proxy and clients are in one process.
func BenchmarkPutRecords(b *testing.B) {
	for _, through := range []string{"direct", "proxy"} {
		b.Run(through, func(b *testing.B) {
			server := runneltest.NewServer(b, runneltest.WithStream("orders", 4))
			connect := func() *kinesis.Client { return server.Kinesis() }
			if through == "proxy" {
				s := serve(b, server.Kinesis(), nil)
				connect = func() *kinesis.Client { return s.client(b) }
			}
			const connections, batch = 8, 500
			var left atomic.Int64
			left.Store(int64(b.N))
			var putting sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for c := range connections {
				client := connect()
				records := make([]types.PutRecordsRequestEntry, batch)
				for i := range records {
					records[i] = types.PutRecordsRequestEntry{
						PartitionKey: aws.String(fmt.Sprint(c, "-", i)), Data: make([]byte, 100),
					}
				}
				putting.Go(func() {
					for left.Add(-1) >= 0 {
						out, err := putAll(b, client, "orders", records...)
						if err != nil || *out.FailedRecordCount != 0 {
							b.Error(err)
							return
						}
					}
				})
			}
			putting.Wait()
			b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
