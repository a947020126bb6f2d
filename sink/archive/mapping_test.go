package archive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

// A batch is archived as Map leaves it, in the records' own places; an error of Map repeats the
// batch.
func TestMap(t *testing.T) {
	dir, errs, outages := t.TempDir(), 0, 0
	a, err := archive.New(archive.Config{
		Dir: dir,
		Map: func(_ context.Context, record *runnel.Record) (bool, error) {
			if string(record.Data) == "3" && errs == 0 {
				errs++
				return false, errors.New("the service does not answer")
			}
			if string(record.Data) == "2" {
				return false, nil
			}
			record.Data = []byte("<" + string(record.Data) + ">")
			record.PartitionKey = strings.ToUpper(record.PartitionKey)
			record.Position, record.ShardID = runnel.Position{Sequence: "1"}, "shardId-000000000099"
			return true, nil
		},
		OnOutage: func(o archive.Outage) {
			if outages++; !strings.Contains(o.Err.Error(), "does not answer") {
				t.Errorf("waits for %v", o.Err)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	shard := shardOf("shardId-000000000000")
	w, err := a.Open(t.Context(), shard)
	if err != nil {
		t.Fatal(err)
	}
	batch := sink.Batch{}
	for n := range 5 {
		batch.Through = runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprint(1001 + n))}
		batch.Records = append(batch.Records, runnel.Record{
			PartitionKey: "k", Data: fmt.Append(nil, n), ShardID: shard.ID,
			Position: batch.Through,
		})
	}
	given := slices.Clone(batch.Records)
	if _, err := w.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, record := range batch.Records {
		if string(record.Data) != string(given[i].Data) || record.PartitionKey != "k" {
			t.Errorf("the caller's record has changed: %+v", record)
		}
	}
	if errs != 1 || outages != 1 {
		t.Errorf("%d errors, %d waits", errs, outages)
	}
	reader, err := archive.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	streams, err := reader.Streams(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	chain := archive.Chain{Stream: streams[0], ShardID: shard.ID}
	for link, err := range reader.Links(t.Context(), chain) {
		if err != nil {
			t.Fatal(err)
		}
		if !link.Mapped || link.Dropped != 1 || link.Count != 4 {
			t.Errorf("the link: %+v", link)
		}
	}
	for record, err := range reader.Records(t.Context(), chain) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", record.ShardID, record.Position,
			record.PartitionKey, record.Data))
	}
	want := []string{"1001 K <0>", "1002 K <1>", "1004 K <3>", "1005 K <4>"}
	for i := range want {
		want[i] = string(shard.ID) + " " + want[i]
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if report, err := archive.Verify(t.Context(), dir, archive.VerifyOptions{}); err != nil ||
		!report.OK() {
		t.Errorf("%+v, %v", report, err)
	}
}

// OnDiscard counts the records that are taken and not committed: those of the loser of a race, and
// those of a writer that ends.
func TestDiscard(t *testing.T) {
	p := inMemory(t)
	var discarded int64
	cfg := archive.Config{OnDiscard: func(n int64) { discarded += n }}
	shard := shardOf("shardId-000000000000")
	one, other := p.open(cfg, shard), p.open(cfg, shard)
	p.write(one, shard.ID, 1, 5)
	p.flush(one)
	if discarded != 0 {
		t.Errorf("a commit discards %d", discarded)
	}
	p.write(other, shard.ID, 1, 3)
	if _, err := other.Flush(t.Context()); !errors.As(err, new(*sink.MovedError)) {
		t.Errorf("the loser: %v", err)
	}
	if discarded != 2 {
		t.Errorf("the loser discards %d, want 2", discarded)
	}
	p.write(one, shard.ID, 5, 6)
	if err := one.Close(); err != nil || discarded != 3 {
		t.Errorf("discarded %d, want 3; %v", discarded, err)
	}
}
