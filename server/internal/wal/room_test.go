package wal

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// wantStalled waits until the log is stalled by cause, and checks the calls of a stalled log. The
// frame at lsn waits.
func (b *bundle) wantStalled(t *testing.T, cause error, lsn LSN) {
	t.Helper()
	synctest.Wait()
	if err := b.Err(); !errors.Is(err, ErrStalled) || !errors.Is(err, cause) {
		t.Fatalf("Err = %v", err)
	}
	if _, err := b.put(t.Context(), 1000, 1); !errors.Is(err, ErrStalled) {
		t.Errorf("Sequence = %v", err)
	}
	if b.Durable() >= lsn {
		t.Errorf("Durable = %d, and the frame at %d was not written", b.Durable(), lsn)
	}
	time.Sleep(time.Hour) // virtual
	if err := b.Err(); !errors.Is(err, ErrStalled) {
		t.Errorf("Err after an hour = %v", err)
	}
}

// A frame that is larger than a log file waits for the room that it needs, as all others do.
func TestALargeFrameStallsAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewCrashable()
		b := start(t, config(disk))
		b.commit(t, 100, upTo(5)...)
		synctest.Wait()
		disk.SetLimit(disk.Used() + 1000)
		var lsn, later LSN
		err := b.Sequence(t.Context(), 41_000, func(tx *Tx) { // both before the log is stalled
			b.journal.mu.Lock()
			defer b.journal.mu.Unlock()
			lsn = tx.Append(KindRecords, payload(5, 40_000), nil)
			later = tx.Append(KindRecords, payload(6, 100), nil)
			b.journal.entries = append(b.journal.entries, 5, 6)
			b.journal.lsns = append(b.journal.lsns, lsn, later)
		})
		if err != nil {
			t.Fatal(err)
		}
		b.wantStalled(t, vfs.ErrNoSpace, lsn)
		if err := b.Wait(t.Context(), b.journal.lsns[4]); err != nil {
			t.Errorf("Wait for an LSN that was durable before = %v", err)
		}
		crashed := clone(disk)
		crashed.SetLimit(0)
		disk.SetLimit(0)
		if err := b.Wait(t.Context(), later); err != nil || b.Err() != nil {
			t.Fatalf("with room again: %v, %v", err, b.Err())
		}
		b.commit(t, 100, 7)
		b.stop(t)
		b = start(t, config(disk))
		b.want(t, upTo(8)...)
		b.stop(t)
		b = start(t, config(crashed))
		b.want(t, upTo(5)...)
		b.stop(t)
	})
}

// A file system may have no room for a write into allocated space, for example if it copies
// changed blocks. The log stalls at each such write, and also at a limit on the length of files.
func TestAWriteWithoutRoomStallsAndGoesOn(t *testing.T) {
	for name, cause := range map[string]error{
		"space": vfs.ErrNoSpace, "quota": syscall.EDQUOT, "limit": syscall.EFBIG,
		"short": &vfs.ShortWrite{N: 100, Err: vfs.ErrNoSpace},
	} {
		for nth := int64(1); nth <= 3; nth++ { // frames, and with another file its block, a note
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { stallAtWrite(t, cause, nth) })
			})
		}
	}
}

func stallAtWrite(t *testing.T, cause error, nth int64) {
	disk := vfs.NewCrashable()
	var full atomic.Bool
	var writes atomic.Int64
	b := start(t, config(vfs.Inject(disk, func(op vfs.Op) error {
		if full.Load() && op.Kind == vfs.OpWrite && isLogFile(op) && writes.Add(1) >= nth {
			return cause
		}
		return nil
	})))
	b.commit(t, 1000, upTo(11)...)
	synctest.Wait()
	full.Store(true)
	lsn, err := b.put(t.Context(), 11, 1500) // in the next file
	if err != nil {
		t.Fatal(err)
	}
	var short *vfs.ShortWrite
	if errors.As(cause, &short) {
		b.wantStalled(t, short.Err, lsn)
	} else {
		b.wantStalled(t, cause, lsn)
	}
	rng := rand.New(rand.NewPCG(uint64(nth), 1))
	for range 5 {
		crashed := start(t, config(disk.Crash(rng)))
		if n := len(crashed.journal.entries); n < 11 || n > 12 {
			t.Errorf("%d frames after a crash", n)
		}
		crashed.stop(t)
	}
	full.Store(false)
	if err := b.Wait(t.Context(), lsn); err != nil {
		t.Fatal(err)
	}
	b.commit(t, 100, 12)
	found := slices.Clone(b.journal.entries)
	if !slices.Equal(found, upTo(13)) {
		t.Errorf("appended %v", found)
	}
	after := clone(disk)
	b.stop(t)
	b = start(t, config(after))
	b.want(t, found...)
	b.stop(t)
}

// Close does not wait for the room that the log waits for.
func TestCloseWhileAWriteHasNoRoomGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewCrashable()
		var full atomic.Bool
		b := start(t, config(vfs.Inject(disk, func(op vfs.Op) error {
			if full.Load() && op.Kind == vfs.OpWrite && isLogFile(op) {
				return syscall.EFBIG
			}
			return nil
		})))
		b.commit(t, 100, 0)
		full.Store(true)
		if _, err := b.put(t.Context(), 1, 100); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := b.Close(t.Context()); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("Close = %v", err)
		}
		full.Store(false)
		b = start(t, config(disk))
		b.want(t, 0)
		b.stop(t)
	})
}
