package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"time"
)

// disk has the rates of the disk alone, measured in the same run.
type disk struct {
	megabytes float64       // MB a second, in writes of a batch's bytes, each synced
	sync      time.Duration // the time of a write of 4 KiB and its sync
}

// measureDisk writes and syncs, one after the other.
func measureDisk(cfg Config) (d disk, err error) {
	file, err := os.CreateTemp(cfg.Dir, "runnel-bench-")
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	if d.sync, err = writes(file, 4<<10, cfg.Row/2); err != nil {
		return d, err
	}
	took, err := writes(file, batchRecords*kib, cfg.Row/2)
	d.megabytes = batchRecords * kib / 1e6 / took.Seconds()
	return d, err
}

// writes returns the mean time of a write and its sync, measured for d.
func writes(file *os.File, bytes int, d time.Duration) (time.Duration, error) {
	chunk := make([]byte, bytes)
	_, _ = rand.Read(chunk) // it does not fail
	begin, times := time.Now(), 0
	for ; times == 0 || time.Since(begin) < d; times++ {
		if _, err := file.Write(chunk); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
	}
	return time.Since(begin) / time.Duration(times), nil
}

// flushDisk waits until the writes of other processes are on the disk. It does nothing on systems
// without the command sync.
func flushDisk(ctx context.Context) { _ = exec.CommandContext(ctx, "sync").Run() }
