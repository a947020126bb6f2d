package wal

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// free is put for a change that frees space.
func (b *bundle) free(ctx context.Context, id uint64, size int) (LSN, error) {
	var lsn LSN
	err := b.SequenceFreeing(ctx, frameSize(size), func(tx *Tx) {
		b.journal.mu.Lock()
		defer b.journal.mu.Unlock()
		lsn = tx.Append(KindRecords, payload(id, size), nil)
		b.journal.entries = append(b.journal.entries, id)
		b.journal.lsns = append(b.journal.lsns, lsn)
	})
	if err == nil {
		err = b.Wait(ctx, lsn)
	}
	return lsn, err
}

func noCheckpoint(context.Context) error { return errors.New("no checkpoint") }

// fill puts frames until the log refuses them, and returns their number. Each is durable.
func (b *bundle) fill(t *testing.T, size int) (n uint64) {
	t.Helper()
	for {
		lsn, err := b.put(t.Context(), n, size)
		if errors.Is(err, ErrStalled) {
			return n
		}
		if err == nil {
			err = b.Wait(t.Context(), lsn)
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		synctest.Wait()
	}
}

// TestDeletionsOnAFullDisk: only changes that free space use the reserve, and each is durable. Once
// it is used up they are refused as well, until there is room.
func TestDeletionsOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		b := start(t, config(disk))
		synctest.Wait()
		b.journal.before(noCheckpoint)
		disk.SetLimit(disk.Used())
		n := b.fill(t, 1000)
		if n < 20 {
			t.Errorf("room for %d frames", n)
		}
		deletions := uint64(0)
		for {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := b.free(ctx, n+deletions, 100)
			cancel()
			if errors.Is(err, ErrStalled) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			deletions++
			if _, err := b.put(t.Context(), 1000, 8); !errors.Is(err, ErrStalled) {
				t.Fatalf("Sequence beside the deletions = %v", err)
			}
		}
		if deletions < 10 {
			t.Errorf("the reserve holds %d deletions", deletions)
		}
		disk.SetLimit(0)
		time.Sleep(2 * prepareRetry)
		synctest.Wait()
		b.commit(t, 1000, n+deletions)
		b.journal.before(nil)
		b.stop(t)
		b = start(t, config(disk))
		b.want(t, upTo(n+deletions+1)...)
		b.stop(t)
	})
}

// TestALargeFrameLeavesTheReserve: a frame that fits into no file that the log has is refused
// before it takes its place in the order, where deletions would wait behind it.
func TestALargeFrameLeavesTheReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		b := start(t, config(disk))
		b.journal.before(noCheckpoint)
		synctest.Wait()
		disk.SetLimit(disk.Used())
		b.commit(t, 1000, upTo(13)...) // into the second file
		synctest.Wait()
		if _, err := b.put(t.Context(), 13, 12_000); !errors.Is(err, ErrStalled) {
			t.Fatalf("a large frame: %v", err)
		}
		if _, err := b.free(t.Context(), 13, 100); err != nil {
			t.Errorf("a deletion behind it: %v", err)
		}
		disk.SetLimit(0)
		b.journal.before(nil)
		b.stop(t)
	})
}

// TestAnObstructedLog takes nothing but changes that free space, and is not stalled itself.
func TestAnObstructedLog(t *testing.T) {
	cause := errors.New("the segments are full")
	b := start(t, config(vfs.NewMem()))
	b.commit(t, 100, 0)
	b.Obstruct(cause)
	if _, err := b.put(t.Context(), 1, 100); !errors.Is(err, cause) || errors.Is(err, ErrStalled) {
		t.Errorf("Sequence = %v", err)
	}
	if b.Err() != nil {
		t.Errorf("Err = %v", b.Err())
	}
	if _, err := b.free(t.Context(), 1, 100); err != nil {
		t.Errorf("a deletion: %v", err)
	}
	b.Obstruct(nil)
	b.commit(t, 100, 2)
	b.stop(t)
}

// TestAnObstructedLogTakesNoSpace: it makes no file, for the machine may wait for that space.
func TestAnObstructedLogTakesNoSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		b := start(t, config(disk))
		b.journal.before(noCheckpoint)
		synctest.Wait()
		b.Obstruct(errors.New("the segments are full"))
		used := disk.Used()
		id := uint64(0)
		for ; id < 100; id++ { // through both files
			if _, err := b.free(t.Context(), id, 1000); errors.Is(err, ErrStalled) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if disk.Used() != used {
			t.Errorf("%d bytes, %d before", disk.Used(), used)
		}
		b.Obstruct(nil)
		synctest.Wait()
		b.commit(t, 1000, id)
		b.journal.before(nil)
		b.stop(t)
	})
}

// TestADeletionLeadsToACheckpoint: the deletion may make the snapshot small enough for the disk, and
// that frees the log's files.
func TestADeletionLeadsToACheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		b := start(t, config(disk))
		synctest.Wait()
		b.journal.before(noCheckpoint)
		disk.SetLimit(disk.Used())
		n := b.fill(t, 1000)
		time.Sleep(time.Hour + 10*time.Second) // the checkpoint is tried again each minute
		b.journal.before(nil)
		disk.SetLimit(disk.Used() + 1<<10)
		if _, err := b.free(t.Context(), n, 100); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if err := b.Err(); err != nil {
			t.Errorf("3 s after the deletion: %v", err)
		}
		b.commit(t, 1000, n+1)
		b.stop(t)
	})
}

// TestSparesGiveWayToASnapshot: the log has more use for the space of a snapshot, which frees files.
func TestSparesGiveWayToASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		b := start(t, config(disk))
		b.journal.before(noCheckpoint)
		b.commit(t, 1000, upTo(60)...)
		synctest.Wait()
		b.journal.before(nil)
		for n := range uint64(2) { // the log reaches back to the snapshot before the newest
			b.commit(t, 100, 60+n)
			if err := b.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		b.mu.Lock()
		spares := len(b.mu.spares)
		b.mu.Unlock()
		if spares == 0 {
			t.Fatal("there is no spare")
		}
		disk.SetLimit(disk.Used())
		b.commit(t, 100, 40)
		if err := b.Checkpoint(t.Context()); err != nil {
			t.Error(err)
		}
		disk.SetLimit(0)
		b.stop(t)
	})
}

// TestStartsOnAFullDisk: starts take no space, whether the lives between them delete something, and
// each can delete. A power cut at any of their changes loses nothing.
func TestStartsOnAFullDisk(t *testing.T) {
	disk, entries := fullDisk(t)
	for life := range uint64(10) {
		cfg := config(disk)
		cfg.FileSize = 256 << 10
		b := start(t, cfg)
		b.journal.before(noCheckpoint)
		b.want(t, entries...)
		if _, err := b.put(t.Context(), 999, 100); !errors.Is(err, ErrStalled) {
			t.Fatalf("life %d: a put on a full disk: %v", life, err)
		}
		if life%5 == 4 {
			if _, err := b.free(t.Context(), 1000+life, 100); err != nil {
				t.Fatalf("life %d: a deletion: %v", life, err)
			}
			entries = append(entries, 1000+life)
		}
		disk = crashed(t, b, disk, life)
		if used := disk.Used(); used > 512<<10+64 { // two files and FORMAT
			t.Errorf("life %d: %d bytes", life, used)
		}
		if life < 2 || life == 4 { // behind a life that wrote something, and one that did not
			cutStarts(t, disk, entries)
		}
	}
	disk.SetLimit(0)
	cfg := config(disk)
	cfg.FileSize = 256 << 10
	b := start(t, cfg)
	b.commit(t, 4000, upTo(400)...) // recycles the small files
	b.stop(t)
	start(t, cfg).stop(t)
	names, err := disk.List("data/wal")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if info, err := disk.Stat("data/wal/" + name); err != nil || info.Size() != cfg.FileSize {
			t.Errorf("%s is a log file of %d bytes, %v", name, info.Size(), err)
		}
	}
}

// TestRestartsTakeNoSpace: lives that write nothing use one file in turn, also with room for more.
func TestRestartsTakeNoSpace(t *testing.T) {
	disk := vfs.NewCrashable()
	b := start(t, config(disk))
	b.journal.before(noCheckpoint)
	b.commit(t, 1000, upTo(30)...)
	disk = crashed(t, b, disk, 0)
	most := int64(0)
	for life := range uint64(6) {
		b = start(t, config(disk))
		b.want(t, upTo(30)...)
		b.journal.before(noCheckpoint)
		disk = crashed(t, b, disk, life)
		if life == 1 {
			// Whether the next file is made ahead, and the mark written, is a matter of time.
			most = disk.Used() + 16<<10 + 4<<10
		} else if life > 1 && disk.Used() > most {
			t.Errorf("life %d: %d bytes, %d after the second", life, disk.Used(), most)
		}
	}
}

// fullDisk returns a disk with two full log files, and their entries.
func fullDisk(t *testing.T) (disk *vfs.Mem, entries []uint64) {
	t.Helper()
	disk = vfs.NewCrashable()
	synctest.Test(t, func(t *testing.T) {
		cfg := config(disk)
		cfg.FileSize = 256 << 10
		b := start(t, cfg)
		b.journal.before(noCheckpoint)
		synctest.Wait()
		disk.SetLimit(disk.Used())
		entries = upTo(b.fill(t, 4000))
		disk = crashed(t, b, disk, 0)
	})
	return disk, entries
}

// crashed ends a life by a power cut.
func crashed(t *testing.T, b *bundle, disk *vfs.Mem, seed uint64) *vfs.Mem {
	t.Helper()
	after := disk.Crash(rand.New(rand.NewPCG(seed, 7)))
	disk.SetLimit(0)
	b.journal.before(nil)
	b.stop(t)
	return after
}

// cutStarts starts on the disk with a power cut at each change, and then again.
func cutStarts(t *testing.T, disk *vfs.Mem, entries []uint64) {
	t.Helper()
	for n := 1; n < 60; n++ {
		rng := rand.New(rand.NewPCG(uint64(n), 8))
		whole := disk.Crash(rng)
		var after *vfs.Mem
		left := n
		var mu sync.Mutex
		cfg := config(vfs.Inject(whole, func(op vfs.Op) error {
			if !op.Kind.Changes() {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				after = whole.Crash(rng)
			}
			if left <= 0 {
				return errKilled
			}
			return nil
		}))
		cfg.FileSize = 256 << 10
		log, err := Open(cfg)
		if err != nil {
			continue // before the start
		}
		log.Register(KindRecords, &journal{})
		_ = log.Start(t.Context()) // which fails, or the log is read-only
		_ = log.Close(t.Context())
		if after == nil {
			return
		}
		cfg.FS = after
		b := start(t, cfg)
		b.want(t, entries...)
		after.SetLimit(0)
		b.stop(t)
	}
}

// TestAReadOnlyStart: without room for any file the log starts, shows everything, refuses all
// writes, and takes them once there is room.
func TestAReadOnlyStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewCrashable()
		b := start(t, config(disk))
		b.journal.before(noCheckpoint)
		synctest.Wait()
		disk.SetLimit(disk.Used())
		entries := upTo(b.fill(t, 1000)) // the rest of the file is too short for another
		disk = crashed(t, b, disk, 0)
		b = start(t, config(disk))
		b.want(t, entries...)
		_, err := b.free(t.Context(), 100, 100)
		if !errors.Is(err, ErrStalled) || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("a deletion: %v", err)
		}
		if _, err := b.put(t.Context(), 100, 100); !errors.Is(err, ErrStalled) {
			t.Errorf("Sequence = %v", err)
		}
		if err := b.Err(); !errors.Is(err, ErrStalled) {
			t.Errorf("Err = %v", err)
		}
		used := disk.Used()
		time.Sleep(time.Minute)
		synctest.Wait()
		if disk.Used() != used {
			t.Errorf("%d bytes used, %d before", disk.Used(), used)
		}
		disk.SetLimit(0)
		time.Sleep(2 * prepareRetry)
		synctest.Wait()
		id := uint64(len(entries))
		b.commit(t, 1000, id)
		b.stop(t)
		b = start(t, config(disk))
		b.want(t, append(slices.Clone(entries), id)...)
		b.stop(t)
	})
}

// TestAReadOnlyLifeEnds in order although it never had a file.
func TestAReadOnlyLifeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewCrashable()
		b := start(t, config(disk))
		b.journal.before(noCheckpoint)
		synctest.Wait()
		disk.SetLimit(disk.Used())
		entries := upTo(b.fill(t, 1000))
		disk = crashed(t, b, disk, 0)
		for range 3 {
			b = start(t, config(disk))
			b.want(t, entries...)
			if err := b.Close(t.Context()); !errors.Is(err, vfs.ErrNoSpace) {
				t.Errorf("Close = %v", err)
			}
		}
	})
}
