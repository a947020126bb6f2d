package kinesis

import (
	"encoding/json"
	"fmt"
	"testing"
)

func benchBody(b *testing.B, records, size int) string {
	b.Helper()
	var list []m
	for i := range records {
		list = append(list, m{"PartitionKey": fmt.Sprint("key-", i), "Data": make([]byte, size)})
	}
	body, err := json.Marshal(m{"StreamName": "orders", "Records": list})
	if err != nil {
		b.Fatal(err)
	}
	return string(body)
}

// BenchmarkPutRecords is the whole call but HTTP and the disk: decode, validate, route, append,
// wait, encode.
func BenchmarkPutRecords(b *testing.B) {
	for _, size := range []int{100, 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			n := newNode(b)
			n.create("orders", 16)
			call := callOf("PutRecords", benchBody(b, 500, size))
			b.SetBytes(int64(500 * size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := n.Serve(n.ctx, call); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(500*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkPutDecoded leaves out the decoding of the request.
func BenchmarkPutDecoded(b *testing.B) {
	n := newNode(b)
	n.create("orders", 16)
	var in putRecordsInput
	if err := decode([]byte(benchBody(b, 500, 1024)), &in); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(500 * 1024)
	b.ReportAllocs()
	for b.Loop() {
		var v violations
		in.validate(&v)
		if _, err := n.putRecords(n.ctx, here, &in); err != nil || v.err() != nil {
			b.Fatal(err, v.err())
		}
	}
	b.ReportMetric(500*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkGetRecords(b *testing.B) {
	for _, size := range []int{100, 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			n := newNode(b)
			n.create("orders", 1)
			for range 4 {
				n.raw(n.ctx, "PutRecords", benchBody(b, 500, size))
			}
			call := callOf("GetRecords",
				`{"ShardIterator":"`+n.iterator("orders", "0", "TRIM_HORIZON")+`"}`)
			b.SetBytes(int64(2000 * size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := n.Serve(n.ctx, call); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(2000*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
