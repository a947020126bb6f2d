package archive_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

// user returns record number n at a place inside a Kinesis record.
func user(id runnel.ShardID, n, kinesis int, sub int64) runnel.Record {
	record := numbered(id, n, n+1)[0]
	record.Position = at(kinesis)
	record.Position.Sub = sub
	return record
}

// aggregated makes an archive of user records: a shard with three aggregates, and a child. The
// reader has dropped the doubles in the second aggregate, and the whole third one. The child's
// first Kinesis record consists of doubles. The stream's records are 0 to 11, each one once.
func aggregated(t *testing.T) (*place, *vfs.Mem) {
	disk := vfs.NewMem()
	p := &place{t, archive.NewDirStoreOn(disk, "to")}
	write := func(w sink.Writer, through runnel.Position, records ...runnel.Record) {
		t.Helper()
		if _, err := w.Write(t.Context(), sink.Batch{
			Records: records, Through: through, State: always("up to " + through.String()),
		}); err != nil {
			t.Fatal(err)
		}
		p.flush(w)
	}
	w := p.open(archive.Config{}, shardOf(parent))
	write(w, runnel.Position{Sequence: at(12).Sequence, Sub: 10}, // ten and more: numbers, not texts
		user(parent, 0, 11, 0), user(parent, 1, 11, 1), user(parent, 2, 11, 2),
		user(parent, 3, 12, 3), user(parent, 4, 12, 9), user(parent, 5, 12, 10))
	write(w, runnel.Position{Sequence: at(13).Sequence, Sub: 2})
	p.end(w)
	w = p.open(archive.Config{}, shardOf(child, parent))
	write(w, runnel.Position{Sequence: at(20).Sequence, Sub: 1})
	write(w, at(22), user(child, 6, 21, 2), user(child, 7, 21, 3), user(child, 8, 22, 0))
	write(w, at(24), user(child, 9, 23, 0), user(child, 10, 23, 2), user(child, 11, 24, 0))
	p.end(w)
	return p, disk
}

func TestAggregates(t *testing.T) {
	p, _ := aggregated(t)
	report := p.verify(p.source(sourceLines(upTo(12)...)))
	p.wantCounts(report, map[string]int64{})
	if !report.OK() || report.Records != 12 || report.Links != 7 {
		t.Errorf("%+v", report)
	}
	var read []string
	stream := archive.Stream{Name: "orders", Created: created}
	for record, err := range archive.NewReader(p.store).All(t.Context(), stream) {
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, string(record.Data))
	}
	if want := strings.Fields(sourceLines(upTo(12)...)); !slices.Equal(read, want) {
		t.Errorf("read %q, want %q", read, want)
	}
}

// TestAggregatesFaults plants faults inside of aggregates.
func TestAggregatesFaults(t *testing.T) {
	file := fmt.Sprintf("to/%s/%s/%s.ndjson.gz", streamFolder, parent, runnel.Start().SortText())
	for name, c := range map[string]struct {
		change func(lines []string) []string
		want   map[string]int64
	}{
		"user records are swapped": {func(l []string) []string {
			l[4], l[5] = l[5], l[4]
			return l
		}, map[string]int64{"damaged": 1, "disorder": 1}},
		"a user record is there twice": {func(l []string) []string {
			return slices.Insert(l, 2, l[1])
		}, map[string]int64{"damaged": 1, "archivedTwice": 1}},
		"a user record is gone": {func(l []string) []string {
			return slices.Delete(l, 1, 2)
		}, map[string]int64{"damaged": 1, "missing": 1}},
		"a user record behind the end": {func(l []string) []string {
			l[5] = strings.Replace(l[5], `"subSequenceNumber":10`, `"subSequenceNumber":11`, 1)
			return l
		}, map[string]int64{"damaged": 1, "misplaced": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p, disk := aggregated(t)
			p.repack(disk, file, func(lines string) string {
				return strings.Join(c.change(strings.SplitAfter(lines, "\n")), "")
			})
			p.wantCounts(p.verify(p.source(sourceLines(upTo(12)...))), c.want)
		})
	}
}
