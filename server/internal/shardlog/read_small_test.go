package shardlog

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// ReadSmall returns the records up to the first large one. Of that one it returns the size, and
// reads no more of a segment than a chunk.
func TestReadSmall(t *testing.T) {
	const most, large = 4 << 10, 700 << 10
	var read atomic.Int64
	fs := vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpRead && strings.HasSuffix(op.Name, ".seg") {
			read.Add(op.Len)
		}
		return nil
	})
	e := setup{fs: fs, segmentSize: 4 << 20, fileSize: 4 << 20}.mustOpen(t)
	defer e.mustClose(t)
	ctx := t.Context()
	if err := e.do(ctx, opCreate, 1); err != nil {
		t.Fatal(err)
	}
	for n, size := range []int{100, 200, large, 300, large, large, 8 << 10, 400} {
		if _, err := e.append(ctx, 1, entry(1, n, size)); err != nil {
			t.Fatal(err)
		}
	}
	sh := e.store.Shard(1)
	check := func(where string) {
		t.Helper()
		for _, c := range []struct {
			from    uint64
			records int
			larger  int
		}{
			{1, 2, 0},
			{2, 1, 0},
			{3, 0, large},
			{4, 1, 0},
			{5, 0, large},
			{6, 0, large},
			{7, 0, 8 << 10},
			{8, 1, 0},
			{9, 0, 0},
		} {
			if _, err := sh.Read(ctx, c.from, 1, 1); err != nil { // the index of places is there
				t.Fatal(err)
			}
			before := read.Load()
			records, next, larger, err := sh.ReadSmall(ctx, nil, c.from, 10, most)
			if err != nil || len(records) != c.records || next != c.from+uint64(c.records) {
				t.Errorf("%s, from %d: %d records, next %d, %v", where, c.from, len(records), next, err)
			}
			if larger < c.larger || larger > c.larger+100 || c.larger == 0 && larger > 0 {
				t.Errorf("%s, from %d: a record of %d bytes, want %d", where, c.from, larger, c.larger)
			}
			if got := read.Load() - before; got > 2*minReadChunk {
				t.Errorf("%s, from %d: %d bytes were read", where, c.from, got)
			}
			for n, r := range records {
				if r.Index != c.from+uint64(n) || !strings.HasPrefix(r.PartitionKey, "key-1-") {
					t.Errorf("%s: record %d is %d %s", where, c.from, r.Index, r.PartitionKey)
				}
			}
		}
	}
	check("in memory")
	e.drained(t)
	check("in a segment")
}
