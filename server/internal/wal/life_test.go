package wal

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// A life is lossy if the one before it synced at intervals and did not end in order. A start in
// between that is cut off, at any change of the disk, does not make it forgotten.
func TestLife(t *testing.T) {
	for _, c := range []struct {
		interval       time.Duration
		inOrder, lossy bool
	}{{0, false, false}, {0, true, false}, {time.Hour, true, false}, {time.Hour, false, true}} {
		for step := 1; ; step++ {
			disk, life := lived(t, c.interval, c.inOrder)
			disk, cut := cutStart(t, disk, step)
			b := start(t, config(disk))
			next, lossy := b.Life()
			// After a clean end, a start that is cut off may be taken for a loss: no harm is done.
			if next <= life || lossy != c.lossy && (c.lossy || !cut || c.interval == 0) {
				t.Errorf("interval %v, in order %v, a start cut off at step %d: life %d after %d, "+
					"lossy %v", c.interval, c.inOrder, step, next, life, lossy)
			}
			b.stop(t)
			if !cut {
				if step < 10 {
					t.Errorf("a start makes only %d changes", step)
				}
				break
			}
		}
	}
}

// lived returns the disk of a life that has filled several files.
func lived(t *testing.T, interval time.Duration, inOrder bool) (*vfs.Mem, uint64) {
	t.Helper()
	disk := vfs.NewCrashable()
	cfg := config(disk)
	cfg.SyncInterval = interval
	b := start(t, cfg)
	life, lossy := b.Life()
	if lossy {
		t.Error("the first life is lossy")
	}
	b.commit(t, 100, upTo(300)...)
	left := disk.Crash(rand.New(rand.NewPCG(1, 1)))
	b.stop(t)
	if inOrder {
		left = disk.Crash(rand.New(rand.NewPCG(1, 1)))
	}
	return left, life
}

// cutStart starts a log that syncs before each acknowledgement, and loses power before the nth
// change of the disk that the start makes. If it makes fewer, nothing has happened.
func cutStart(t *testing.T, disk *vfs.Mem, n int) (left *vfs.Mem, cut bool) {
	t.Helper()
	var mu sync.Mutex
	seen, before := 0, disk.Crash(rand.New(rand.NewPCG(1, 1)))
	b, err := launch(t.Context(), config(vfs.Inject(disk, func(op vfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.Changes() && left == nil {
			if seen++; seen == n {
				left = disk.Crash(rand.New(rand.NewPCG(uint64(n), 2)))
			}
		}
		if left != nil {
			return vfs.ErrInjected
		}
		return nil
	})))
	mu.Lock()
	cut = left != nil && err != nil // and not in what it does after its start
	mu.Unlock()
	if err == nil {
		_ = b.Close(t.Context()) // on a disk that is not looked at again
	}
	if !cut {
		return before, false
	}
	return left, true
}

// TestLossy has the cases of older formats, whose notes do not say whether a life ended in order.
func TestLossy(t *testing.T) {
	end := note{end: 64, ok: true}
	clean, next := end, end
	clean.clean, next.next = true, 9
	for _, c := range []struct {
		acks acks
		note note
		want bool
	}{
		{acksSynced, note{}, false},
		{acksEarly, note{}, true},
		{acksEarly, end, true},
		{acksEarly, clean, false},
		{acksUnknown, note{}, true},
		{acksUnknown, end, false},
		{acksUnknown, next, true},
		{acksUnknown, note{end: 32, ok: true}, true},
	} {
		if got := (segment{acks: c.acks}).lossy(c.note, 64); got != c.want {
			t.Errorf("acks %d, note %+v: lossy %v", c.acks, c.note, got)
		}
	}
}
