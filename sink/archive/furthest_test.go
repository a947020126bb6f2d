package archive_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/archive"
)

// named counts the names that are asked for. Its names may be late: it hides the last ones.
type named struct {
	counting
	names  int
	hidden int
	listed []string
}

func (s *named) After(ctx context.Context, folder, name string) (string, error) {
	s.names++
	if s.listed == nil {
		listing, err := s.Store.List(ctx, folder)
		if err != nil {
			return "", err
		}
		s.listed = listing.Objects[:max(0, len(listing.Objects)-s.hidden)]
	}
	at, there := slices.BinarySearch(s.listed, name)
	if there {
		at++
	}
	if at == len(s.listed) {
		return "", nil
	}
	return s.listed[at], nil
}

// The tip of a chain of any length is found by few names, also where its numbers are as far apart as
// those of Kinesis, and where the names are late.
func TestTipIsFoundByNames(t *testing.T) {
	for _, links := range []int{0, 1, 2, 3, 40, 3000} {
		for _, hidden := range []int{0, 1, 5} {
			p := &place{t, archive.NewDirStoreOn(vfs.NewMem(), "to")}
			w := p.open(archive.Config{Size: 1}, shardOf(parent))
			random := rand.New(rand.NewPCG(uint64(links), 1))
			var end runnel.Position
			for n := range links {
				seconds := 1_600_000_000 + n*60
				end = runnel.Position{Sequence: runnel.SequenceNumber(fmt.Sprintf(
					"496%010d%030d%013d", seconds, random.Int64(), n))}
				record := numbered(parent, n, n+1)
				record[0].Position = end
				_, err := w.Write(t.Context(), sink.Batch{Records: record, Through: end})
				if err != nil {
					t.Fatal(err)
				}
			}
			store := &named{counting: counting{Store: p.store}, hidden: hidden}
			got := p.open(archive.Config{Store: store}, shardOf(parent)).Committed()
			if got.End != end {
				t.Errorf("%d links: the tip is at %s, want %s", links, got.End, end)
			}
			if gets := int(store.gets.Load()); store.names > 400 || gets > 5+hidden {
				t.Errorf("%d links, %d hidden: %d names and %d reads", links, hidden, store.names, gets)
			}
			t.Logf("%d links, %d hidden: %d names, %d reads", links, hidden, store.names,
				store.gets.Load())
		}
	}
}
