package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/runneltest"
)

// BenchmarkOnce reads a stream of four shards from its beginning, by one worker over a loopback
// socket, leases and checkpoints included. It reads 20,000 Kinesis records of 1 KiB, and then
// 200,000 user records of 100 bytes, in 400 aggregates that are units, each of them there twice.
func BenchmarkOnce(b *testing.B) {
	b.Run("records", func(b *testing.B) {
		server := runneltest.NewServer(b, runneltest.WithStream("orders", 4))
		const calls, perCall, size = 40, 500, 1 << 10
		for call := range calls {
			var keys, data []string
			for i := range perCall {
				keys = append(keys, fmt.Sprint(call, "-", i))
				data = append(data, string(make([]byte, size)))
			}
			putAll(b, server, keys, data)
		}
		readOnce(b, server, calls*perCall, size)
	})
	b.Run("aggregates", func(b *testing.B) {
		server := runneltest.NewServer(b, runneltest.WithStream("orders", 4))
		const units, perUnit, size = 400, 500, 100
		user := slices.Repeat([]string{string(make([]byte, size))}, perUnit)
		for i := 0; i < units; i += 20 {
			var keys, data []string
			for n := i; n < i+20; n++ {
				key := fmt.Sprint("key-", n)
				frozen := unit(1, uint64(n+1), key, user...)
				keys, data = append(keys, key, key), append(data, frozen, frozen)
			}
			putAll(b, server, keys, data)
		}
		readOnce(b, server, units*perUnit, size)
	})
}

// BenchmarkForms reads 100,000 user records of 100 bytes and of as many keys, in aggregates of one
// shard, by each handler form.
func BenchmarkForms(b *testing.B) {
	server := runneltest.NewServer(b, runneltest.WithStream("orders", 1))
	const packs, perPack, size = 200, 500, 100
	data := []string{string(make([]byte, size))}
	for i := 0; i < packs; i += 20 {
		var keys, packed []string
		for n := i; n < i+20; n++ {
			parts := make([]part, perPack)
			for k := range parts {
				parts[k] = part{key: fmt.Sprint(n, "-", k), data: data}
			}
			keys, packed = append(keys, "key"), append(packed, pack(0, parts...))
		}
		putAll(b, server, keys, packed)
	}
	var nothing each = func(context.Context, *runnel.Record) error { return nil }
	for name, into := range map[string]func(*consumer.Config){
		"Handler": nothing.asHandler, "Processor": nothing.asProcessor,
		"Record": nothing.asRecord(1), "Record of 50": nothing.asRecord(50),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var app int
			for b.Loop() {
				app++
				c := consumer.Config{
					Stream: "orders", App: fmt.Sprint(name, app), Once: true,
					Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
				}
				c.App = strings.ReplaceAll(c.App, " ", "-")
				into(&c)
				w, err := consumer.New(c)
				if err == nil {
					err = w.Run(b.Context())
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*packs*perPack/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func putAll(b *testing.B, server *runneltest.Server, keys, data []string) {
	b.Helper()
	in := &kinesis.PutRecordsInput{StreamName: aws.String("orders")}
	for i := range keys {
		in.Records = append(in.Records, types.PutRecordsRequestEntry{
			PartitionKey: aws.String(keys[i]), Data: []byte(data[i]),
		})
	}
	if _, err := server.Kinesis().PutRecords(b.Context(), in); err != nil {
		b.Fatal(err)
	}
}

func readOnce(b *testing.B, server *runneltest.Server, records, size int) {
	b.SetBytes(int64(records) * int64(size))
	b.ReportAllocs()
	var app int
	for b.Loop() {
		app++
		var n atomic.Int64
		w, err := consumer.New(consumer.Config{
			Stream: "orders", App: fmt.Sprint("app-", app), Once: true,
			Kinesis: server.Kinesis(), DynamoDB: server.DynamoDB(),
			Handler: func(_ context.Context, batch *consumer.Batch) error {
				n.Add(int64(len(batch.Records)))
				return nil
			},
		})
		if err == nil {
			err = w.Run(b.Context())
		}
		if err != nil || n.Load() != int64(records) {
			b.Fatalf("%d records, %v", n.Load(), err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(records)/b.Elapsed().Seconds(), "records/s")
}
