package wal

import (
	"sync"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// TestInline: when Sequence returns, its frames are durable and their durable functions have run.
// It uses many goroutines, many files, and a second life.
func TestInline(t *testing.T) {
	t.Parallel()
	disk := vfs.NewMem()
	cfg := config(disk)
	cfg.Inline = true
	b := start(t, cfg)
	const writers, frames = 8, 500
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range frames {
				lsn, err := b.put(t.Context(), uint64(w*frames+i), 100)
				if err != nil || b.Durable() < lsn {
					t.Errorf("frame %d of %d: durable to %d of %d, %v", i, w, b.Durable(), lsn, err)
					return
				}
			}
		})
	}
	group.Wait()
	if b.journal.visible != writers*frames {
		t.Errorf("%d durable functions have run, want %d", b.journal.visible, writers*frames)
	}
	var end LSN
	err := b.Sequence(t.Context(), 3*maxBatch, func(tx *Tx) { // several batches at once
		b.journal.mu.Lock()
		defer b.journal.mu.Unlock()
		for i := range 3 * maxBatch / 1000 {
			end = tx.Append(KindRecords, payload(uint64(writers*frames+i), 1000), nil)
			b.journal.entries = append(b.journal.entries, uint64(writers*frames+i))
			b.journal.lsns = append(b.journal.lsns, end)
		}
	})
	if err != nil || b.Durable() < end {
		t.Errorf("several batches: durable to %d of %d, %v", b.Durable(), end, err)
	}
	entries := b.journal.entries
	b.stop(t)
	b = start(t, cfg)
	b.want(t, entries...)
	b.stop(t)
}
