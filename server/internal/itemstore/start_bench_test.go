package itemstore

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// BenchmarkStart opens a directory with RUNNEL_ITEMS items of 1 KB, whose files the operating
// system has in memory, and closes it. It reports the memory that an item takes, beside the weight
// that the store counts.
func BenchmarkStart(b *testing.B) {
	items, err := strconv.Atoi(os.Getenv("RUNNEL_ITEMS"))
	if err != nil || items <= 0 {
		b.Skip("SKIP: RUNNEL_ITEMS is the number of items, 1000000 for the published figure")
	}
	dir := filepath.ToSlash(filepath.Join(b.TempDir(), "data"))
	begin := func() bench {
		log, err := wal.Open(wal.Config{
			FS: vfs.OS{}, Dir: dir, SyncInterval: time.Second, Logger: quiet,
		})
		if err != nil {
			b.Fatal(err)
		}
		s := New(Config{Log: log})
		if err := log.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		return bench{log, s}
	}
	s := begin()
	table := s.create(b, "t", byID)
	pad := String(strings.Repeat("x", 960))
	var next atomic.Int64
	var group sync.WaitGroup
	most := int64(0)
	filled := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			use, err := s.log.DiskUse()
			if err == nil {
				most = max(most, use.Log)
			}
			select {
			case <-tick.C:
			case <-filled:
				return
			}
		}
	}()
	for range 8 {
		group.Go(func() {
			for n := next.Add(1); n <= int64(items); n = next.Add(1) {
				s.put(b, table, Item{
					"id": String(fmt.Sprint("item-", n)), "leaseCounter": NumberOf(100),
					"leaseOwner": String("worker"), "pad": pad,
				})
			}
		})
	}
	group.Wait()
	close(filled)
	<-watched
	b.Logf("filled; wal/ had up to %d MiB", most>>20)
	s.close(b)
	s = bench{}
	heap := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	for b.Loop() {
		b.StopTimer()
		s, table = bench{}, nil
		before := heap()
		b.StartTimer()
		s = begin()
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/float64(items), "B/item")
		b.ReportMetric(float64(s.Memory().Used)/float64(items), "weight/item")
		if found := s.Inspect()[0].Items; found != int64(items) {
			b.Fatalf("%d items of %d", found, items)
		}
		b.StartTimer()
		s.close(b)
	}
}
