package wal

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// marked is a disk as a kill leaves it, a moment after one batch of frames, and the end of the
// log with its mark.
func marked(t *testing.T, delay, interval time.Duration) (
	disk *vfs.Mem, ids []uint64, end LSN,
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		live := vfs.NewCrashable()
		cfg := config(live)
		cfg.MarkDelay, cfg.SyncInterval = delay, interval
		b := start(t, cfg)
		b.journal.finish = func(context.Context) error { return errors.New("no checkpoint") }
		ids = upTo(5)
		b.commit(t, rotPayload, ids...)
		time.Sleep(time.Hour) // virtual
		disk, end = clone(live), b.Durable()
		if err := b.Close(t.Context()); err == nil {
			t.Error("Close has made a snapshot")
		}
	})
	return disk, ids, end
}

// Rot in the last batch before a kill looks like a torn tail; the mark behind the batch proves
// the rot.
func TestRotInTheLastBatchIsReportedOnceMarked(t *testing.T) {
	name := fileName("data", 1)
	last := int64(blockSize + 4*frameSize(rotPayload))
	for off := range int64(frameHeader + rotPayload) {
		disk, ids, _ := marked(t, -1, 0)
		damage(t, disk, name, last+off, flip, 1)
		if found, corrupt := outcome(t, disk); corrupt != nil || !slices.Equal(found, ids[:4]) {
			t.Fatalf("byte %d, without a mark: %v, %v", off, found, corrupt)
		}
		for _, interval := range []time.Duration{0, time.Second} {
			disk, _, _ = marked(t, 0, interval)
			damage(t, disk, name, last+off, flip, 1)
			found, corrupt := outcome(t, disk)
			if corrupt == nil || corrupt.File != name || corrupt.Offset != last {
				t.Fatalf("byte %d, with a mark, synced every %v: %v, %v",
					off, interval, found, corrupt)
			}
		}
	}
	for off := range int64(frameHeader) { // of the mark itself: there is nothing to lose
		disk, ids, _ := marked(t, 0, 0)
		damage(t, disk, name, last+int64(frameSize(rotPayload))+off, flip, 1)
		if found, corrupt := outcome(t, disk); corrupt != nil || !slices.Equal(found, ids) {
			t.Fatalf("byte %d of the mark: %v, %v", off, found, corrupt)
		}
	}
}

// An idle log writes one mark, and only after frames: it does not grow by itself.
func TestAnIdleLogWritesOneMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, interval := range []time.Duration{0, time.Minute} {
			cfg := config(vfs.NewMem())
			cfg.SyncInterval = interval
			b := start(t, cfg)
			grown := func(want LSN, when string) {
				t.Helper()
				before := b.Durable()
				time.Sleep(24 * time.Hour) // virtual
				if by := b.Durable() - before; by != want {
					t.Errorf("interval %v, %s: %d bytes more, want %d", interval, when, by, want)
				}
			}
			grown(0, "after a start")
			b.commit(t, 100, 0, 1)
			grown(frameHeader, "after frames")
			grown(0, "after a mark")
			b.commit(t, 100, 2)
			grown(frameHeader, "after another frame")
			if err := b.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			grown(0, "after a checkpoint")
			b.commit(t, 100, 3)
			if err := b.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			grown(0, "after a frame that a snapshot holds")
			b.room.mu.Lock()
			pending := b.room.mu.used
			b.room.mu.Unlock()
			if pending != 0 {
				t.Errorf("%d bytes are counted as pending", pending)
			}
			b.stop(t)
			b = start(t, cfg)
			b.want(t, upTo(4)...)
			grown(0, "after a start with a snapshot")
			b.stop(t)
		}
	})
}

// A mark does not begin a file, for which there may be no room.
func TestAMarkNeedsNoFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		b := start(t, config(disk))
		room := 16<<10 - blockSize
		b.commit(t, room-frameHeader, 0) // all of the first file
		synctest.Wait()
		disk.SetLimit(disk.Used())
		before := b.Durable()
		time.Sleep(time.Hour) // virtual
		if b.Durable() != before || b.Err() != nil {
			t.Errorf("%d bytes more, %v", b.Durable()-before, b.Err())
		}
		disk.SetLimit(0)
		b.stop(t)
	})
}

// A log file was cut off, and no later frame proves it: the length in its first block does.
func TestACutOffFileIsReported(t *testing.T) {
	whole, ids, end := marked(t, 0, 0)
	name := fileName("data", 1)
	for _, size := range []int64{
		16<<10 - 1, blockSize + int64(end), blockSize + int64(frameSize(rotPayload)),
		blockSize, blockUsed,
	} {
		disk := clone(whole)
		f, err := disk.Open(name)
		if err == nil {
			err = errors.Join(f.Truncate(size), f.Sync(), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if found, corrupt := outcome(t, disk); corrupt == nil || corrupt.File != name {
			t.Errorf("cut to %d bytes: %v of %v, %v", size, found, ids, corrupt)
		}
	}
}

// A header behind zeros is found at every offset, in reads of every size.
func TestAMarkIsFoundBehindZeros(t *testing.T) {
	for at := 0; at < 3*len(zeros); at += frameAlign {
		p := make([]byte, at, at+frameHeader+len(zeros))
		p = append(p, sealed(7, 64+LSN(at), nil)...)
		p = p[:cap(p)]
		r := newReader(nil, segment{generation: 7, start: 64, size: 1 << 20}, 64)
		if !r.findMark(p, 63) || r.off != int64(blockSize+at) {
			t.Fatalf("the header at %d is not found: %d", at, r.off-blockSize)
		}
		r = newReader(nil, segment{generation: 7, start: 64, size: 1 << 20}, 64)
		if r.findMark(p[:at+frameHeader-1], 63) || r.off > int64(blockSize+at) {
			t.Fatalf("half a header at %d is stepped over: %d", at, r.off-blockSize)
		}
	}
}

// BenchmarkFindMark searches behind the end of a log file of 64 MiB, as each start does in addition
// to the replay. "empty" is a file that was not filled, "old" one that is used again.
func BenchmarkFindMark(b *testing.B) {
	const size = 64 << 20
	old := sealed(3, 0, payload(1, 1000))
	for name, fill := range map[string][]byte{"empty": nil, "old": old} {
		b.Run(name, func(b *testing.B) {
			p := make([]byte, readWindow)
			for at := 0; len(fill) > 0 && at+len(fill) <= len(p); at += len(fill) {
				copy(p[at:], fill)
			}
			b.SetBytes(size)
			for b.Loop() {
				r := newReader(nil, segment{generation: 7, start: 1 << 40, size: size}, 1<<40)
				for range size / readWindow {
					if r.findMark(p, 1<<40) {
						b.Fatal("found one")
					}
				}
			}
		})
	}
}
