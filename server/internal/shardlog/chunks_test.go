package shardlog

import "testing"

// Lent memory belongs to one reader until it is released. Small and huge buffers are not lent.
func TestChunks(t *testing.T) {
	var a, b Chunks
	bufs := [][]byte{a.get(maxReadChunk), a.get(maxReadChunk), b.get(maxReadChunk), b.get(maxReadChunk)}
	for i, buf := range bufs {
		buf[0] = byte(i)
	}
	for i, buf := range bufs {
		if buf[0] != byte(i) {
			t.Errorf("buffers %d and %d share memory", i, buf[0])
		}
	}
	if part := a.get(maxReadChunk / 2); len(part) != maxReadChunk/2 || cap(part) != len(part) {
		t.Errorf("half a chunk is %d of %d bytes", len(part), cap(part))
	}
	a.Release()
	a.Release() // a second Release has no effect
	if len(a.lent) != 0 || len(b.lent) != 2 {
		t.Errorf("%d and %d are lent after one release", len(a.lent), len(b.lent))
	}
	seen := map[*byte]bool{}
	for range 8 {
		buf := b.get(maxReadChunk)
		if seen[&buf[0]] {
			t.Error("a released chunk is lent twice")
		}
		seen[&buf[0]] = true
	}
	for _, size := range []int{1, maxReadChunk/4 - 1, maxReadChunk + 1} {
		if n := len(b.lent); len(b.get(size)) != size || len(b.lent) != n {
			t.Errorf("%d bytes are lent", size)
		}
	}
	if got := (*Chunks)(nil).get(maxReadChunk); len(got) != maxReadChunk {
		t.Errorf("without chunks there are %d bytes", len(got))
	}
}
