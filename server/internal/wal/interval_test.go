package wal

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

func TestSyncAtIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var syncs atomic.Int64
		var broken atomic.Bool
		fs := vfs.Inject(vfs.NewCrashable(), func(op vfs.Op) error {
			if op.Kind == vfs.OpSync && isLogFile(op) {
				syncs.Add(1)
				if broken.Load() {
					return vfs.ErrInjected
				}
			}
			return nil
		})
		cfg := config(fs)
		cfg.SyncInterval = 10 * time.Millisecond
		cfg.MarkDelay = -1
		b := start(t, cfg)
		synctest.Wait()
		before := syncs.Load()
		begin := time.Now()
		b.commit(t, 10, upTo(100)...)
		if took := time.Since(begin); took != 0 || syncs.Load() != before {
			t.Errorf("100 frames waited %v and for %d syncs", took, syncs.Load()-before)
		}
		time.Sleep(time.Hour)
		if n := syncs.Load() - before; n != 1 {
			t.Errorf("%d syncs for one burst", n)
		}
		for range 5 {
			b.commit(t, 10, 0)
			time.Sleep(4 * time.Millisecond)
		}
		synctest.Wait()
		if n := syncs.Load() - before; n != 1+2 {
			t.Errorf("%d syncs, want 2 for 20 ms of trickle", n-1)
		}
		broken.Store(true)
		b.commit(t, 10, 0) // counts when it is written
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		var poisoned *PoisonedError
		if _, err := b.put(t.Context(), 1, 10); !errors.As(err, &poisoned) {
			t.Errorf("after a failed interval sync: %v", err)
		}
		broken.Store(false)
		if err := b.Close(t.Context()); !errors.As(err, &poisoned) {
			t.Errorf("Close = %v", err)
		}
	})
}

// AppendSynced syncs its frame and those before it, although the log syncs once an hour.
func TestSyncedAtIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewCrashable()
		cfg := config(disk)
		cfg.SyncInterval = time.Hour
		b := start(t, cfg)
		b.commit(t, 10, 0, 1)
		var lsn LSN
		err := b.Sequence(t.Context(), frameSize(10), func(tx *Tx) {
			b.journal.mu.Lock()
			defer b.journal.mu.Unlock()
			lsn = tx.AppendSynced(KindRecords, payload(2, 10), nil)
		})
		if err == nil {
			err = b.Wait(t.Context(), lsn)
		}
		if err != nil {
			t.Fatal(err)
		}
		synced := func() LSN {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.mu.synced
		}
		if got := synced(); got != lsn {
			t.Errorf("synced up to %d, want %d", got, lsn)
		}
		b.commit(t, 10, 3)
		if got := synced(); got != lsn {
			t.Errorf("the next frame is synced too, up to %d", got)
		}
		b.stop(t)
	})
}
