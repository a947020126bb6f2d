package wal

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// BenchmarkAppend appends from 64 goroutines, each waiting for its frame, on the disk. It
// reports MB/s of the log, how many frames share a sync, and the ratio of the speed to that of
// writing the same bytes to the same disk in sequence: "of-raw" with 1 MiB to a write and a
// sync, "of-raw-batches" with as many syncs as the log has made.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 32 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			benchmark(b, vfs.OS{}, b.TempDir(), 64, size)
		})
	}
}

// BenchmarkAlone is one appender: the time is that of a write and a sync.
func BenchmarkAlone(b *testing.B) {
	benchmark(b, vfs.OS{}, b.TempDir(), 1, 1<<10)
}

// BenchmarkMemory is the log without a disk: what it costs by itself.
func BenchmarkMemory(b *testing.B) {
	benchmark(b, vfs.NewMem(), "data", 64, 1<<10)
}

// BenchmarkSlowDisk is a disk behind a network: 1.5 ms to a sync.
func BenchmarkSlowDisk(b *testing.B) {
	slow := vfs.Inject(vfs.NewMem(), func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			time.Sleep(1500 * time.Microsecond)
		}
		return nil
	})
	benchmark(b, slow, "data", 64, 1<<10)
}

func benchmark(b *testing.B, fs vfs.FS, dir string, workers, size int) {
	var syncs atomic.Int64
	counting := vfs.Inject(fs, func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			syncs.Add(1)
		}
		return nil
	})
	log, err := Open(Config{FS: counting, Dir: filepath.ToSlash(dir)})
	if err != nil {
		b.Fatal(err)
	}
	log.Register(KindRecords, &silent{})
	if err := log.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	p := make([]byte, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			var lsn LSN
			frame := func(tx *Tx) { lsn = tx.Append(KindRecords, p, nil) }
			for i := w; i < b.N; i += workers {
				if err := log.Sequence(b.Context(), size, frame); err != nil {
					b.Error(err)
					return
				}
				if err := log.Wait(b.Context(), lsn); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	took, n := b.Elapsed(), syncs.Load()
	b.ReportMetric(float64(b.N)/float64(n), "frames/sync")
	if err := log.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, ok := fs.(vfs.OS); ok && b.N > 1000 {
		bytes := int64(b.N) * int64(size)
		b.ReportMetric(float64(raw(b, dir, bytes, 1<<20))/float64(took), "of-raw")
		b.ReportMetric(float64(raw(b, dir, bytes, bytes/n))/float64(took), "of-raw-batches")
	}
}

// raw writes so many bytes, syncs each piece of them, and returns how long that took.
func raw(b *testing.B, dir string, bytes, piece int64) time.Duration {
	f, err := vfs.OS{}.Create(filepath.ToSlash(filepath.Join(dir, "raw")))
	if err != nil {
		b.Fatal(err)
	}
	const file = 64 << 20
	if err := f.Allocate(file); err != nil {
		b.Fatal(err)
	}
	p := make([]byte, piece)
	begin := time.Now()
	for off := int64(0); off < bytes; off += piece {
		if _, err := f.WriteAt(p[:min(piece, bytes-off)], off%file); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(begin)
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "raw")); err != nil {
		b.Fatal(err)
	}
	return took
}
