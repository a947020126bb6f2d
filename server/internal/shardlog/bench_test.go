package shardlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// benchEngine is an engine of the default sizes on a real disk.
func benchEngine(b *testing.B, shards int) *engine {
	b.Helper()
	dir := filepath.ToSlash(b.TempDir())
	log, err := wal.Open(wal.Config{FS: vfs.OS{}, Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	store, err := New(Config{Log: log, FS: vfs.OS{}, Dir: dir, Now: time.Now, OpenFiles: 8192})
	if err != nil {
		b.Fatal(err)
	}
	e := &engine{log: log, store: store, cat: &catalogue{store: store}}
	log.Register(wal.KindCatalogue, e.cat)
	if err := log.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		err := errors.Join(log.Close(context.WithoutCancel(b.Context())), store.Close())
		if err != nil {
			b.Error(err)
		}
	})
	for id := range ID(shards) {
		if err := e.do(b.Context(), opCreate, id); err != nil {
			b.Fatal(err)
		}
	}
	return e
}

func kilobytes(n int) []Entry {
	list := make([]Entry, n)
	for i := range list {
		list[i] = Entry{PartitionKey: fmt.Sprintf("key-%06d", i), Data: make([]byte, 1024)}
	}
	return list
}

// BenchmarkAppend appends records of 1 KiB, with the sync awaited: an operation is one call,
// spread over the 16 shards as PutRecords would (500 records: 31 or 32 to each shard).
func BenchmarkAppend(b *testing.B) {
	for _, each := range []struct{ records, workers int }{{500, 8}, {32, 64}, {1, 64}} {
		b.Run(fmt.Sprintf("records=%d/workers=%d", each.records, each.workers), func(b *testing.B) {
			e := benchEngine(b, 16)
			benchAppend(b, e, each.records, each.workers)
		})
	}
}

func benchAppend(b *testing.B, e *engine, records, workers int) {
	shards := min(16, records)
	parts := make([][]Entry, shards)
	size := 0
	for i, entry := range kilobytes(records) {
		parts[i%shards] = append(parts[i%shards], entry)
	}
	for _, part := range parts {
		size += BatchSize(part)
	}
	b.SetBytes(int64(records) * 1024)
	b.ReportAllocs()
	b.ResetTimer()
	var calls atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for n := calls.Add(1); n <= int64(b.N); n = calls.Add(1) {
				if err := benchPut(b.Context(), e, 16, parts, size, int(n)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N*records)/b.Elapsed().Seconds(), "records/s")
}

// benchPut appends the parts to consecutive shards, from the nth on, in one sequencing.
func benchPut(ctx context.Context, e *engine, shards int, parts [][]Entry, size, n int) error {
	var lsn wal.LSN
	var failed error
	err := e.log.Sequence(ctx, size, func(tx *wal.Tx) {
		for i, part := range parts {
			_, lsn, failed = e.store.Shard(ID((n+i)%shards)).Append(tx, part)
			if failed != nil {
				return
			}
		}
	})
	return errors.Join(err, failed, e.log.Wait(ctx, lsn))
}

// BenchmarkRead reads a shard of 128 MiB from its beginning to its end, again and again, from
// the page cache. An operation is one Read of up to 10,000 records and 2 MiB.
func BenchmarkRead(b *testing.B) {
	e := benchEngine(b, 16)
	list := kilobytes(512)
	for range 256 {
		if _, err := e.append(b.Context(), 1, list...); err != nil {
			b.Fatal(err)
		}
	}
	e.drained(b)
	sh := e.store.Shard(1)
	for _, records := range []int{10_000, 100} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			b.ReportAllocs()
			from, read := uint64(1), 0
			for b.Loop() {
				got, err := sh.Read(b.Context(), from, records, 2<<20)
				if err != nil {
					b.Fatal(err)
				}
				from, read = from+uint64(len(got)), read+len(got)
				if len(got) == 0 {
					from = 1
				}
			}
			b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(read)/1e6*1024/b.Elapsed().Seconds(), "MB/s")
		})
	}
}
