package wal

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

const (
	burstTime      = 2 * time.Second
	burstRounds    = 3 // the medians count
	burstAppenders = 64
	burstFrame     = 1 << 10 // bytes
	burstFile      = 2 << 30 // more than a burst writes
	wrappedFile    = defaultFileSize
)

// BenchmarkBurst appends frames of 1 KiB from 64 goroutines, each waiting for its own, for two
// seconds, in turns with a bare log that does the least that group commit needs: see bareLog.
// "of-bare" is the log's rate beside a bare log in a file that was allocated ahead and is
// written for the first time, as the log's own files are until they are used again;
// "of-bare-again" beside one that writes over the same 64 MiB again and again, where no write
// and no sync changes anything but data. The time of an iteration is not that of an append.
func BenchmarkBurst(b *testing.B) {
	var logs, fresh, again []float64
	for range b.N {
		for range burstRounds {
			logs = append(logs, burstOfLog(b, vfs.OS{}, burstTime, nil))
			fresh = append(fresh, burstOfBare(b, burstTime, burstFile))
			again = append(again, burstOfBare(b, burstTime, wrappedFile))
		}
	}
	reportBurst(b, logs, fresh, again)
}

// BenchmarkSteady is BenchmarkBurst for RUNNEL_STEADY_SECONDS, once each: it includes checkpoints
// and reused files, but its machine keeps no state. server/internal/shardlog measures the cost of
// records, which are also drained to segments.
func BenchmarkSteady(b *testing.B) {
	seconds, err := strconv.Atoi(os.Getenv("RUNNEL_STEADY_SECONDS"))
	if err != nil || seconds <= 0 {
		b.Skip("SKIP: RUNNEL_STEADY_SECONDS says for how long, 60 for the published figure")
	}
	d := time.Duration(seconds) * time.Second
	log := burstOfLog(b, vfs.OS{}, d, nil)
	fresh, again := burstOfBare(b, d, burstFile), burstOfBare(b, d, wrappedFile)
	reportBurst(b, []float64{log}, []float64{fresh}, []float64{again})
}

// BenchmarkSlowSyncs adds 1.5 ms to each sync of the disk, and reports the percentiles of the
// time from an append until it is durable, over all appends of 64 goroutines with one frame
// each at a time.
func BenchmarkSlowSyncs(b *testing.B) {
	slow := vfs.Inject(vfs.OS{}, func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			time.Sleep(1500 * time.Microsecond)
		}
		return nil
	})
	var times []time.Duration
	for range b.N {
		burstOfLog(b, slow, burstTime, &times)
	}
	slices.Sort(times)
	for _, p := range []struct {
		name string
		part float64
	}{{"ms-p50", 0.5}, {"ms-p99", 0.99}, {"ms-p99.9", 0.999}, {"ms-max", 1}} {
		at := times[int(p.part*float64(len(times)-1))]
		b.ReportMetric(float64(at.Microseconds())/1000, p.name)
	}
	b.ReportMetric(float64(len(times))/burstTime.Seconds()/float64(b.N), "frames/s")
	b.ReportMetric(0, "ns/op") // the time is given
}

func reportBurst(b *testing.B, logs, fresh, again []float64) {
	median := func(values []float64) float64 {
		slices.Sort(values)
		return values[len(values)/2]
	}
	log := median(logs)
	b.ReportMetric(log, "frames/s")
	b.ReportMetric(log*burstFrame/1e6, "MB-of-payload/s")
	b.ReportMetric(log/median(fresh), "of-bare")
	b.ReportMetric(log/median(again), "of-bare-again")
	b.ReportMetric(0, "ns/op") // the time is given
}

// burst calls append from all appenders for d, and returns how often a second, and the time
// that each call took, if times is not nil.
func burst(d time.Duration, times *[]time.Duration, append1 func(appender int)) float64 {
	var group sync.WaitGroup
	var calls atomic.Int64
	took := make([][]time.Duration, burstAppenders)
	begin := time.Now()
	for appender := range burstAppenders {
		group.Go(func() {
			n := int64(0)
			for now := time.Now(); now.Sub(begin) < d; n++ {
				append1(appender)
				after := time.Now()
				if times != nil {
					took[appender] = append(took[appender], after.Sub(now))
				}
				now = after
			}
			calls.Add(n)
		})
	}
	group.Wait()
	seconds := time.Since(begin).Seconds()
	if times != nil {
		*times = append(*times, slices.Concat(took...)...)
	}
	return float64(calls.Load()) / seconds
}

func burstOfLog(b *testing.B, fs vfs.FS, d time.Duration, times *[]time.Duration) float64 {
	dir := b.TempDir()
	log, err := Open(Config{FS: fs, Dir: filepath.ToSlash(dir)})
	if err != nil {
		b.Fatal(err)
	}
	log.Register(KindRecords, &silent{})
	if err := log.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	p := make([]byte, burstFrame)
	lsns := make([]LSN, burstAppenders)
	frames := make([]func(*Tx), burstAppenders)
	for i := range frames {
		frames[i] = func(tx *Tx) { lsns[i] = tx.Append(KindRecords, p, nil) }
	}
	rate := burst(d, times, func(appender int) {
		err := log.Sequence(b.Context(), burstFrame, frames[appender])
		if err == nil {
			err = log.Wait(b.Context(), lsns[appender])
		}
		if err != nil {
			b.Error(err)
		}
	})
	if err := log.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
	return rate
}

func burstOfBare(b *testing.B, d time.Duration, size int64) float64 {
	name := filepath.Join(b.TempDir(), "bare")
	file, err := vfs.OS{}.Create(filepath.ToSlash(name))
	if err == nil {
		err = file.Allocate(size)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		b.Fatal(err)
	}
	bare := &bareLog{file: file, size: size, kick: make(chan struct{}, 1)}
	bare.mu.batch = newBareBatch()
	var writer sync.WaitGroup
	writer.Go(bare.write)
	p := make([]byte, burstFrame)
	rate := burst(d, nil, func(int) {
		if err := bare.append(p); err != nil {
			b.Error(err)
		}
	})
	close(bare.kick)
	writer.Wait()
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		b.Fatal(err)
	}
	return rate
}

// bareLog is a log with group commit and nothing else: appenders add to a buffer, one goroutine
// writes it to a file that was allocated ahead, syncs it, and wakes them. It has no checksums,
// no numbers, no index, no limit on memory, no second file, and cannot be read again.
type bareLog struct {
	file vfs.File
	size int64
	kick chan struct{} // there is something in the batch; closed at the end
	mu   struct {
		sync.Mutex
		batch *bareBatch
	}
}

type bareBatch struct {
	buf  []byte
	done chan struct{} // closed once err is set and the batch is durable
	err  error
}

func newBareBatch() *bareBatch { return &bareBatch{done: make(chan struct{})} }

// append returns when p is durable.
func (l *bareLog) append(p []byte) error {
	l.mu.Lock()
	batch := l.mu.batch
	batch.buf = append(batch.buf, p...)
	l.mu.Unlock()
	select {
	case l.kick <- struct{}{}:
	default:
	}
	<-batch.done
	return batch.err
}

func (l *bareLog) write() {
	var off int64
	var spare []byte
	for range l.kick {
		next := newBareBatch()
		next.buf = spare[:0]
		l.mu.Lock()
		batch := l.mu.batch
		if len(batch.buf) == 0 {
			l.mu.Unlock()
			continue
		}
		l.mu.batch = next
		l.mu.Unlock()
		if off+int64(len(batch.buf)) > l.size {
			off = 0
		}
		if _, batch.err = l.file.WriteAt(batch.buf, off); batch.err == nil {
			batch.err = l.file.Sync()
		}
		off += int64(len(batch.buf))
		spare = batch.buf
		close(batch.done)
		runtime.Gosched() // as the log does: the woken appenders add to the next batch
	}
}
