package kinesis

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/runnel-stream/runnel/internal/wire"
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

func benchCBOR(records, size int) []byte {
	var list []any
	for i := range records {
		list = append(list, pairs{
			{"PartitionKey", fmt.Sprint("key-", i)}, {"Data", blob(make([]byte, size))},
		})
	}
	return appendValueCBOR(nil, pairs{{"StreamName", "orders"}, {"Records", list}},
		func() bool { return false })
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
	plan := n.plans["PutRecords"]
	if err := plan.decode(wire.JSON, []byte(benchBody(b, 500, 1024)), &in); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(500 * 1024)
	b.ReportAllocs()
	for b.Loop() {
		if err := plan.validate(&in); err != nil {
			b.Fatal(err)
		}
		if _, err := n.putRecords(n.ctx, here, &in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(500*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkPutCBOR is BenchmarkPutRecords with the requests of the SDKs for Java.
func BenchmarkPutCBOR(b *testing.B) {
	n := newNode(b)
	n.create("orders", 16)
	call := callOf("PutRecords", "")
	call.Format = wire.CBOR
	call.Body = benchCBOR(500, 1024)
	b.SetBytes(500 * 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := n.Serve(n.ctx, call); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(500*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkDecode measures the plain, the escaped and the binary form of a request alone.
func BenchmarkDecode(b *testing.B) {
	body := []byte(benchBody(b, 500, 1024))
	plan := planFor("PutRecords")
	binary := benchCBOR(500, 1024)
	escaped := append([]byte(`{"\u0053treamName":"orders",`), body[1:]...)
	for name, decode := range map[string]func(in *putRecordsInput) bool{
		"scanned": func(in *putRecordsInput) bool { return in.Decode(wire.JSON, body) == nil },
		"JSON":    func(in *putRecordsInput) bool { return in.Decode(wire.JSON, escaped) == nil },
		"CBOR":    func(in *putRecordsInput) bool { return in.Decode(wire.CBOR, binary) == nil },
		"plan, JSON": func(in *putRecordsInput) bool {
			return plan.decode(wire.JSON, body, in) == nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(500 * 1024)
			b.ReportAllocs()
			for b.Loop() {
				var in putRecordsInput
				if !decode(&in) || len(in.Records) != 500 {
					b.Fatal("not decoded")
				}
			}
		})
	}
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
