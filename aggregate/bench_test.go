package aggregate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// batch is 500 records of 100 bytes of so many keys.
func batch(keys int) (records []aggregate.Record) {
	for i := range 500 {
		records = append(records, aggregate.Record{
			PartitionKey: fmt.Sprint("repository-", i%keys), Data: make([]byte, 100),
		})
	}
	records[0].Tags = aggregate.Unit{Producer: runA, Number: 1 << 20, Low: 1<<20 - 5}.AppendTo(nil)
	return records
}

// perRecord reports the time for one of the batch's records.
func perRecord(b *testing.B, records int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
}

func BenchmarkEncode(b *testing.B) {
	for _, keys := range []int{1, 14, 500} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			records := batch(keys)
			var e aggregate.Encoder
			var sealed []byte
			b.ReportAllocs()
			for range b.N {
				e.Reset()
				for _, r := range records {
					if e.SizeWith(r) > 256<<10 || e.Add(r) != nil {
						b.Fatal("refused")
					}
				}
				sealed = e.Seal(sealed[:0])
			}
			b.SetBytes(int64(len(sealed)))
			perRecord(b, len(records))
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, keys := range []int{1, 14, 500} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			var e aggregate.Encoder
			add(b, &e, batch(keys)...)
			sealed := e.Seal(nil)
			var d aggregate.Decoder
			shard := keyspace.Range{End: keyspace.Max().Sub(keyspace.Key{Lo: 1})}
			b.SetBytes(int64(len(sealed)))
			b.ReportAllocs()
			for range b.N {
				if !d.Open(sealed) || d.Check(shard) != nil {
					b.Fatal("not opened")
				}
				for _, r := range d.Records() {
					if len(r.Data) != 100 {
						b.Fatal("another record")
					}
				}
			}
			perRecord(b, d.Len())
		})
	}
}

// BenchmarkAdmit is a unit's judgement, its lane's hash included. lanes is how many have a unit
// in flight.
func BenchmarkAdmit(b *testing.B) {
	for _, lanes := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			records := make([]aggregate.Record, lanes)
			for i := range records {
				records[i].PartitionKey = fmt.Sprint("repository-", i)
			}
			var f aggregate.Filter
			now := time.Now()
			b.ReportAllocs()
			for i := range b.N {
				n := uint64(i + 1)
				unit := aggregate.Unit{Producer: runA, Number: n, Low: n - min(n-1, uint64(lanes-1))}
				if f.Admit(unit, unit.Lane(records[i%lanes]), now) != aggregate.VerdictFresh {
					b.Fatal("not fresh")
				}
			}
		})
	}
}
