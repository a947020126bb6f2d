package consumer

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// BenchmarkOpen opens aggregates of 500 user records of 100 bytes into pages, with their shard's
// range checked and their units judged, and saves the state for a sink.
func BenchmarkOpen(b *testing.B) {
	const aggregates, perAggregate = 20, 500
	for _, keys := range []int{1, 50} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			var got [aggregates]types.Record
			for i := range got {
				var e aggregate.Encoder
				u := aggregate.Unit{Number: uint64(i + 1), Low: uint64(i + 1)}
				for n := range perAggregate {
					r := aggregate.Record{
						PartitionKey: fmt.Sprint("key-", n%keys), Data: make([]byte, 100),
					}
					if n == 0 {
						r.Tags = u.AppendTo(nil)
					}
					if err := e.Add(r); err != nil {
						b.Fatal(err)
					}
				}
				got[i] = types.Record{
					Data: e.Seal(nil), PartitionKey: aws.String("key-0"),
					SequenceNumber:              aws.String(strconv.Itoa(1000 + i)),
					ApproximateArrivalTimestamp: aws.Time(time.UnixMilli(1)),
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				o := newReading("shardId-000000000000", runnel.Start())
				o.Keys = keyspace.Range{End: keyspace.Max().Sub(keyspace.Key{Lo: 1})}
				o.Filter = &aggregate.Filter{}
				o.mirror, o.tracks = newMirror(o.Filter, true), true
				var p page
				for i := range got {
					if err := o.open(b.Context(), &got[i], &p); err != nil {
						b.Fatal(err)
					}
				}
				if p.change = o.change(); len(p.records) != aggregates*perAggregate || p.change == nil {
					b.Fatalf("%d records", len(p.records))
				}
			}
			records := float64(b.N) * aggregates * perAggregate
			b.ReportMetric(records/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// An aggregate without user records, the mark of a place, delivers no record. The reader passes it
// and reads on.
func TestOpenEmptyAggregate(t *testing.T) {
	o := newReading("shardId-000000000000", runnel.Start())
	o.Keys = keyspace.Range{} // none but 0: a mark belongs anywhere
	o.Filter = &aggregate.Filter{}
	var p page
	for i, data := range [][]byte{aggregate.Empty(), []byte("plain"), aggregate.Empty()} {
		err := o.open(t.Context(), &types.Record{
			Data: data, PartitionKey: aws.String("a"), SequenceNumber: aws.String(strconv.Itoa(5 + i)),
			ApproximateArrivalTimestamp: aws.Time(time.UnixMilli(1)),
		}, &p)
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(p.records) != 1 || p.read != 3 || p.doubles+p.malformed+p.unfiltered+len(p.voided) > 0 ||
		o.After != (runnel.Position{Sequence: "7"}) {
		t.Errorf("%+v, after %s", p, o.After)
	}
}
