package wal

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// TestZerosAhead checks the writes of small batches: now and then they include zeros, where the
// file was never written. Afterwards all frames are readable.
func TestZerosAhead(t *testing.T) {
	t.Parallel()
	const fileSize, smallBatch = 8 * aheadSize, aheadSize / aheadFor
	type span struct{ off, n int64 }
	var mu sync.Mutex
	var writes []span
	fs := vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && isLogFile(op) && op.Off >= blockSize {
			mu.Lock()
			defer mu.Unlock()
			writes = append(writes, span{op.Off, op.Len})
			if op.Off+op.Len > fileSize {
				t.Errorf("%v goes beyond the file's end", op)
			}
		}
		return nil
	})
	cfg := config(fs)
	cfg.FileSize, cfg.MaxPending, cfg.MarkDelay = fileSize, 8*aheadSize, -1
	next := uint64(0)
	// put commits frames of a size, each in a batch of its own, and returns the written spans.
	put := func(b *bundle, frames, size int) []span {
		t.Helper()
		mu.Lock()
		writes = nil
		mu.Unlock()
		for range frames {
			b.commit(t, size, next)
			next++
		}
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(writes)
	}
	zeros := func(writes []span, size int) (n int) {
		for _, w := range writes {
			if w.n != int64(frameSize(size)) {
				n++
			}
		}
		return n
	}

	b := start(t, cfg)
	first := put(b, 3, 1000)
	at := int64(blockSize + frameSize(1000))
	want := []span{
		{blockSize, int64(frameSize(1000))},
		{at, aheadSize},
		{at, int64(frameSize(1000))},
		{at + int64(frameSize(1000)), int64(frameSize(1000))},
	}
	if !slices.Equal(first, want) {
		t.Errorf("the first frames wrote %v, want %v", first, want)
	}
	if n := zeros(put(b, aheadSize/frameSize(1000), 1000), 1000); n != 1 {
		t.Errorf("512 KiB of small batches wrote zeros %d times, want once", n)
	}
	if n := zeros(put(b, 6, smallBatch), smallBatch); n != 0 {
		t.Errorf("large batches wrote zeros %d times", n)
	}
	if n := zeros(put(b, 1, 1000), 1000); n != 1 {
		t.Errorf("a small batch behind large ones wrote zeros %d times, want once", n)
	}
	for range 8 { // all of the files that go round have been filled by this life
		put(b, fileSize/smallBatch, smallBatch)
		if err := b.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := zeros(put(b, fileSize/frameSize(30_000), 30_000), 30_000); n != 0 {
		t.Errorf("a file that this life has filled got zeros %d times", n)
	}
	b.stop(t)

	b = start(t, cfg)
	b.want(t, upTo(next)...)
	// A spare that a start has found may never have been written.
	if n := zeros(put(b, 3, 1000), 1000); n != 1 {
		t.Errorf("the first frames of the second life wrote zeros %d times, want once", n)
	}
	put(b, fileSize/frameSize(50_000), 50_000) // to the file's end, and no further
	b.stop(t)

	for name, change := range map[string]func(*Config){
		"at intervals": func(c *Config) { c.SyncInterval = time.Hour },
		"inline":       func(c *Config) { c.Inline = true },
	} {
		other := cfg
		change(&other)
		b = start(t, other)
		b.want(t, upTo(next)...)
		if n := zeros(put(b, 3, 1000), 1000); n != 0 {
			t.Errorf("%s: zeros %d times, for no sync", name, n)
		}
		b.stop(t)
	}

	other := config(fs)
	other.Dir, other.MarkDelay = "small", -1
	b, next = start(t, other), 0
	got := put(b, 1, 100)
	at = int64(blockSize + frameSize(100))
	if want := []span{{blockSize, at - blockSize}, {at, other.FileSize / 8}}; !slices.Equal(got, want) {
		t.Errorf("in a small file the first frame wrote %v, want %v", got, want)
	}
	b.stop(t)
}

// TestZerosAheadRefused: a disk that takes the frames and not the zeros is as good as any.
func TestZerosAheadRefused(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	var refused atomic.Int64
	cfg := config(vfs.Inject(disk, func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && isLogFile(op) && op.Len == aheadSize {
			refused.Add(1)
			return vfs.ErrNoSpace
		}
		return nil
	}))
	cfg.FileSize = 8 * aheadSize
	b := start(t, cfg)
	b.commit(t, 1000, upTo(50)...)
	b.stop(t)
	if n := refused.Load(); n != 1 {
		t.Errorf("zeros were refused %d times, want once", n)
	}
	cfg.FS = disk
	b = start(t, cfg)
	b.want(t, upTo(50)...)
	b.stop(t)
}
