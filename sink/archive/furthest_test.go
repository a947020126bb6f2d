package archive_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

// named counts the calls for names, and returns few at a time. Its names may be late: it hides the
// last ones.
type named struct {
	counting
	calls        int
	page, hidden int
}

func (s *named) After(ctx context.Context, folder, name string) ([]string, bool, error) {
	s.calls++
	names, _, err := s.Store.After(ctx, folder, name)
	names = names[:max(0, len(names)-s.hidden)]
	return names[:min(len(names), s.page)], len(names) > s.page, err
}

// The tip of a chain of any length is found by few names, also where its numbers are as far apart
// as those of Kinesis, and where the names are late.
func TestTipIsFoundByNames(t *testing.T) {
	for _, links := range []int{0, 1, 2, 3, 40, 3000} {
		p := &place{t, archive.NewDirStoreOn(vfs.NewMem(), "to")}
		w := p.open(archive.Config{Size: 1}, shardOf(parent))
		random := rand.New(rand.NewPCG(uint64(links), 1))
		var end runnel.Position
		for n := range links {
			end = runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprintf(
				"496%010d%030d%013d", 1_600_000_000+n*60, random.Int64(), n))}
			record := numbered(parent, n, n+1)
			record[0].Position = end
			_, err := w.Write(t.Context(), sink.Batch{Records: record, Through: end})
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, page := range []int{1, 1000} {
			for _, hidden := range []int{0, 1, 5} {
				store := &named{counting: counting{Store: p.store}, page: page, hidden: hidden}
				got := p.open(archive.Config{Store: store}, shardOf(parent)).Committed()
				if got.End != end {
					t.Errorf("%d links: the tip is at %s, want %s", links, got.End, end)
				}
				gets := int(store.gets.Load())
				if store.calls > 400 || gets > 5+hidden || links < page && store.calls > 1 {
					t.Errorf("%d links, %d names a call, %d hidden: %d calls and %d reads", links, page,
						hidden, store.calls, gets)
				}
				t.Logf("%d links, %d names a call, %d hidden: %d calls, %d reads", links, page, hidden,
					store.calls, gets)
			}
		}
	}
}

// stuck is a store that returns the first names whatever name is asked for.
type stuck struct{ archive.Store }

func (s stuck) After(ctx context.Context, folder, _ string) ([]string, bool, error) {
	names, _, err := s.Store.After(ctx, folder, "")
	return names[:min(len(names), 2)], len(names) > 2, err
}

// A store that does not go on behind a name costs time, and neither the end nor a record.
func TestTipBesideWrongNames(t *testing.T) {
	p := inMemory(t)
	w := p.open(archive.Config{Size: 1}, shardOf(parent))
	for n := range 20 {
		p.write(w, parent, n, n+1)
	}
	p.store = stuck{p.store}
	if got := p.open(archive.Config{}, shardOf(parent)).Committed(); got.End != at(19) {
		t.Errorf("the tip is at %s", got.End)
	}
	n := 0
	chain := archive.Chain{Stream: archive.Stream{Name: "orders", Created: created}, ShardID: parent}
	for _, err := range archive.NewReader(p.store).Records(t.Context(), chain) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 20 {
		t.Errorf("%d records", n)
	}
}
