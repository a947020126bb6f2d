package keytable

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/producer"
	"github.com/runnel-stream/runnel/runneltest"
)

func benchTable(b *testing.B, server *runneltest.Server) *Table {
	b.Helper()
	table, err := Open(b.Context(), Config{DynamoDB: server.DynamoDB(), Table: "keys"})
	if err != nil {
		b.Fatal(err)
	}
	return table
}

func BenchmarkKey(b *testing.B) {
	table := benchTable(b, runneltest.NewServer(b))
	for b.Loop() {
		if _, err := table.Key(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUse(b *testing.B) {
	table := benchTable(b, runneltest.NewServer(b))
	s, err := table.Join(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close(context.WithoutCancel(b.Context()))
	b.ReportAllocs()
	for b.Loop() {
		_, done, err := s.Use(b.Context(), "a")
		if err != nil {
			b.Fatal(err)
		}
		done()
	}
}

// New names, one at a time by so many processes, and 90 in a call.
func BenchmarkAssign(b *testing.B) {
	for _, processes := range []int{1, 4} {
		b.Run(fmt.Sprint("processes=", processes), func(b *testing.B) {
			server := runneltest.NewServer(b)
			var next atomic.Int64
			b.SetParallelism(processes)
			b.RunParallel(func(pb *testing.PB) {
				table := benchTable(b, server)
				for pb.Next() {
					if _, err := table.Key(b.Context(), fmt.Sprint("n", next.Add(1))); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
	b.Run("64 goroutines", func(b *testing.B) {
		table := benchTable(b, runneltest.NewServer(b))
		var next atomic.Int64
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := table.Key(b.Context(), fmt.Sprint("n", next.Add(1))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
	b.Run("90 at a time", func(b *testing.B) {
		table, n := benchTable(b, runneltest.NewServer(b)), 0
		for b.Loop() {
			names := make([]string, 90)
			for i := range names {
				n++
				names[i] = fmt.Sprint("n", n)
			}
			if _, err := table.Assign(b.Context(), 1, names...); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(90*b.N)/b.Elapsed().Seconds(), "names/s")
	})
}

// sunk answers every put at once.
type sunk struct{}

func (sunk) PutRecords(_ context.Context, in *kinesis.PutRecordsInput, _ ...func(*kinesis.Options)) (*kinesis.PutRecordsOutput, error) {
	out := &kinesis.PutRecordsOutput{Records: make([]types.PutRecordsResultEntry, len(in.Records))}
	for i := range out.Records {
		out.Records[i] = types.PutRecordsResultEntry{ShardId: aws.String("shardId-000000000000"), SequenceNumber: aws.String("1")}
	}
	return out, nil
}

func (sunk) PutRecord(context.Context, *kinesis.PutRecordInput, ...func(*kinesis.Options)) (*kinesis.PutRecordOutput, error) {
	return nil, nil
}

// BenchmarkPut measures the cost of Keys for a Put: without any, and with a session.
func BenchmarkPut(b *testing.B) {
	for _, with := range []string{"no keys", "explicit", "session"} {
		b.Run(with, func(b *testing.B) {
			cfg := producer.Config{Stream: "orders", Kinesis: sunk{}}
			if with == "session" {
				s, err := benchTable(b, runneltest.NewServer(b)).Join(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close(context.WithoutCancel(b.Context()))
				cfg.Keys = s
			}
			p, err := producer.New(b.Context(), cfg)
			if err != nil {
				b.Fatal(err)
			}
			records := make([]runnel.Record, 100)
			for i := range records {
				records[i] = runnel.Record{PartitionKey: fmt.Sprint("tenant-", i), Data: make([]byte, 100)}
				if with == "explicit" {
					records[i].ExplicitHashKey = "170141183460469231731687303715884105728"
				}
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				if err := p.PutFunc(b.Context(), records[n%len(records)], nil); err != nil {
					b.Fatal(err)
				}
			}
			if err := p.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
