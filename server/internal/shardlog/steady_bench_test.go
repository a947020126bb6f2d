package shardlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// BenchmarkSteady appends 500 records of 1 KiB a call, 8 calls at a time, each synced, for
// RUNNEL_STEADY_SECONDS: long enough that records are drained to segments, segments synced and
// log files used again as fast as records come. Every byte is then written twice, to the log
// and to a segment, so half of the device's bandwidth is the most that there is; "of-device" is
// the records' rate beside writes of 1 MiB, each synced, for as long as a sixth of that time.
// "of-16" is the rate beside that over 16 shards. It fills the disk by all that it writes, some 10 GB
// to 30 GB in a minute.
func BenchmarkSteady(b *testing.B) {
	seconds, err := strconv.Atoi(os.Getenv("RUNNEL_STEADY_SECONDS"))
	if err != nil || seconds <= 0 {
		b.Skip("SKIP: RUNNEL_STEADY_SECONDS says for how long, 60 for the published figure")
	}
	d := time.Duration(seconds) * time.Second
	few := 0.0
	for _, shards := range []int{16, 4000} {
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			device := deviceRate(b, max(d/6, time.Second))
			rate := steadyRate(b, shards, d)
			if shards == 16 {
				few = rate
			}
			b.ReportMetric(rate, "records/s")
			b.ReportMetric(rate*1024/1e6, "MB-of-payload/s")
			b.ReportMetric(rate*1024/device, "of-device")
			b.ReportMetric(rate/few, "of-16")
			b.ReportMetric(0, "ns/op") // the time is given
		})
	}
}

// steadyRate returns the records a second. The 500 records of a call go to consecutive shards.
func steadyRate(b *testing.B, shards int, d time.Duration) float64 {
	e := benchEngine(b, shards)
	const records, workers = 500, 8
	parts := make([][]Entry, min(shards, records))
	size := 0
	for i, entry := range kilobytes(records) {
		parts[i%len(parts)] = append(parts[i%len(parts)], entry)
	}
	for _, part := range parts {
		size += BatchSize(part)
	}
	var calls atomic.Int64
	var group sync.WaitGroup
	begin := time.Now()
	for range workers {
		group.Go(func() {
			for time.Since(begin) < d {
				n := int(calls.Add(1)) * len(parts)
				if err := benchPut(b.Context(), e, shards, parts, size, n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	return float64(calls.Load()*records) / time.Since(begin).Seconds()
}

// deviceRate returns bytes a second of writes of 1 MiB, each synced, over a file of 1 GiB.
func deviceRate(b *testing.B, d time.Duration) float64 {
	const file, piece = 1 << 30, 1 << 20
	name := filepath.Join(b.TempDir(), "raw")
	f, err := vfs.OS{}.Create(filepath.ToSlash(name))
	if err == nil {
		err = f.Allocate(file)
	}
	if err != nil {
		b.Fatal(err)
	}
	p := make([]byte, piece)
	written := int64(0)
	begin := time.Now()
	for ; time.Since(begin) < d; written += piece {
		if _, err := f.WriteAt(p, written%file); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(begin)
	if err := errors.Join(f.Close(), os.Remove(name)); err != nil {
		b.Fatal(err)
	}
	return float64(written) / took.Seconds()
}
