package archive

import (
	"fmt"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink"
)

// benchRecord is an event of a repository, of some 220 bytes.
func benchRecord(n int) runnel.Record {
	return runnel.Record{
		PartitionKey: fmt.Sprintf("someone-%d/some-project", n%5000),
		Data: fmt.Appendf(nil, `{"id":"%d","type":"PushEvent","created_at":"2015-01-01T00:00:00Z",`+
			`"repo":"someone-%d/some-project","actor_id":%d,"ref":"refs/heads/master","size":1,`+
			`"head":"%040x"}`, 2489368070+n, n%5000, n*7919, uint64(n)*0x9e3779b97f4a7c15),
		ShardID: "shardId-000000000000",
		Position: runnel.Position{Sequence: runnel.SequenceNumber(
			fmt.Sprintf("49590338271490256608559692538361571095921575989136%06d", n))},
		ArrivalTime: time.UnixMilli(1_700_000_000_000 + int64(n)).UTC(),
	}
}

func BenchmarkWrite(b *testing.B) {
	const batch, count = 500, 100_000
	records := make([]runnel.Record, count)
	size := 0
	for n := range records {
		records[n] = benchRecord(n)
		size += len(AppendRecord(nil, &records[n])) + 1
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		writeBench(b, NewDirStoreOn(vfs.NewMem(), "to"), records, batch)
	}
	b.ReportMetric(float64(count)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func writeBench(b *testing.B, store Store, records []runnel.Record, batch int) {
	a, err := New(Config{Store: store, Size: 8 << 20})
	if err != nil {
		b.Fatal(err)
	}
	w, err := a.Open(b.Context(), sink.Shard{
		Stream: "s", Created: time.UnixMilli(1),
		ID: "shardId-000000000000",
	})
	if err != nil {
		b.Fatal(err)
	}
	for from := 0; from < len(records); from += batch {
		part := records[from:min(from+batch, len(records))]
		if _, err := w.Write(b.Context(), sink.Batch{
			Records: part, Through: part[len(part)-1].Position,
		}); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := w.End(b.Context()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkVerify(b *testing.B) {
	const count = 100_000
	records := make([]runnel.Record, count)
	for n := range records {
		records[n] = benchRecord(n)
	}
	store := NewDirStoreOn(vfs.NewMem(), "to")
	writeBench(b, store, records, 500)
	source := func(yield func(SourceRecord, error) bool) {
		for n := range records {
			record := SourceRecord{ID: fmt.Sprint(2489368070 + n), Key: records[n].PartitionKey}
			if !yield(record, nil) {
				return
			}
		}
	}
	for name, options := range map[string]VerifyOptions{
		"alone": {}, "source": {Records: source, ID: "id", Ordered: true},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				report, err := NewReader(store).Verify(b.Context(), options)
				if err != nil || !report.OK() {
					b.Fatal(err, report)
				}
			}
			b.ReportMetric(float64(count)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
