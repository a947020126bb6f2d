package archive

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink"
)

// gapBench is an archive in memory and a writer of its one shard.
type gapBench struct {
	*testing.T
	store  Store
	writer sink.Writer
	shard  sink.Shard
}

func newGapBench(t *testing.T) *gapBench {
	b := &gapBench{T: t, store: NewDirStoreOn(vfs.NewMem(), "to"), shard: sink.Shard{
		Stream: "orders", Created: time.UnixMilli(1_700_000_000_123), ID: "shardId-000000000000",
	}}
	a, err := New(Config{Store: b.store, Every: time.Hour})
	if err == nil {
		b.writer, err = a.Open(t.Context(), b.shard)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *gapBench) write(batch sink.Batch) sink.Committed {
	b.Helper()
	for i := range batch.Records {
		batch.Records[i].ShardID = b.shard.ID
	}
	c, err := b.writer.Write(b.Context(), batch)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func (b *gapBench) verify(allowed bool) *Report {
	b.Helper()
	report, err := NewReader(b.store).Verify(b.Context(), VerifyOptions{AllowGaps: allowed})
	if err != nil {
		b.Fatal(err)
	}
	return report
}

func place(sequence string) runnel.Position {
	return runnel.Position{Sequence: runnel.SequenceNumber(sequence)}
}

// A gap is committed at once, at the beginning of a link of its own, and verification finds it
// there.
func TestGapIsCommittedAtOnce(t *testing.T) {
	b := newGapBench(t)
	c := b.write(sink.Batch{
		Records: []runnel.Record{{Position: place("5")}}, Through: place("5"),
	})
	if c.End != runnel.Start() {
		t.Fatalf("a record without a gap is committed up to %s", c.End)
	}
	if _, err := b.writer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = b.write(sink.Batch{
		Records: []runnel.Record{{Position: place("9")}}, Through: place("9"),
		Gap: &sink.Gap{After: place("5"), Before: place("9"), Reason: "a test"},
	})
	if c.End != place("9") {
		t.Errorf("a gap with a record is committed up to %s", c.End)
	}
	tip := runnel.Position{Sequence: "9", Sub: 1}
	c = b.write(sink.Batch{
		Through: tip, Gap: &sink.Gap{After: place("9"), Before: tip, Reason: "a test"},
	})
	if c.End != tip {
		t.Errorf("a gap without a record is committed up to %s", c.End)
	}
	report := b.verify(true)
	if !report.OK() || report.Links != 3 || report.Gaps.Count != 2 {
		t.Errorf("%+v", report)
	}
	var text strings.Builder
	if err := b.verify(false).WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"gaps 2: the stream may have removed records unread; --allow-gaps accepts that",
		"nothing between 5 and 9: a test", "nothing between 9 and 9/1: a test",
		"verdict NOT OK: gaps: 2",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
			t.Errorf("%q is not in the report:\n%s", want, &text)
		}
	}
}

// A gap behind a batch that waits is refused: the state of that batch is no longer known.
func TestGapBehindABatchThatWaits(t *testing.T) {
	b := newGapBench(t)
	b.write(sink.Batch{Through: place("5")})
	_, err := b.writer.Write(t.Context(), sink.Batch{
		Through: place("9"), Gap: &sink.Gap{After: place("5"), Before: place("9")},
	})
	if !errors.Is(err, sink.ErrOutOfOrder) {
		t.Errorf("got %v, want ErrOrder", err)
	}
}

// A link with a gap that is not at its beginning, or that holds a record, is damaged.
func TestGapInTheWrongPlace(t *testing.T) {
	for name, gap := range map[string]sink.Gap{
		"not at the beginning": {After: place("2"), Before: place("5")},
		"of no length":         {After: runnel.Start(), Before: runnel.Start()},
		"beyond the link":      {After: runnel.Start(), Before: place("8")},
	} {
		b := newGapBench(t)
		stream := Stream{Name: b.shard.Stream, Created: b.shard.Created.UTC()}
		object, err := appendLink(nil, &Link{
			Stream: stream, ShardID: b.shard.ID, End: place("7"), Writer: "w", Nonce: "n",
			Gap: &gap,
		})
		if err == nil {
			err = b.store.PutIfAbsent(t.Context(), objectName(folder(stream, b.shard.ID),
				runnel.Start()), object)
		}
		if err != nil {
			t.Fatal(err)
		}
		if report := b.verify(true); report.Damaged.Count != 1 {
			t.Errorf("%s: %+v", name, report)
		}
	}
}
