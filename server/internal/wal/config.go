package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// Config configures a Log. The zero value of a field means its default.
type Config struct {
	// FS holds the log. Required.
	FS vfs.FS
	// Dir is the log's folder, made if it is not there. Required.
	Dir string
	// SyncInterval is how often frames are synced if they count as durable when they are
	// written: a power loss can then undo that much of what was acknowledged, a crash of the
	// process nothing. Frames of Tx.AppendSynced are synced before they count all the same.
	// Default 0: sync before every acknowledgement, shared by group commit.
	SyncInterval time.Duration
	// FileSize is the length of a log file, allocated ahead, and how much is logged between
	// two checkpoints. A frame that is larger gets a larger file. Default 64 MiB, in bytes, at
	// least 8 KiB.
	FileSize int64
	// MaxPending is how much may be not yet durable, or held, before Sequence waits. Default
	// 64 MiB, in bytes.
	MaxPending int64
	// MarkDelay is how long after the last frame was synced a mark is written, once: a frame
	// that says so. Damage to what is before it is then told from a torn tail. Default 250 ms;
	// below 0: no marks.
	MarkDelay time.Duration
	// Inline commits before Sequence returns, on its caller's goroutine: for an FS whose writes
	// do not block, as one in memory, where a committer's waking costs more than its work.
	Inline bool
	// ReadOnly opens the log for Inspect alone: nothing is written, not even the lock's file.
	ReadOnly bool
	// Logger is told what happens in the background: checkpoints and files that fail and are
	// tried again. Default slog.Default().
	Logger *slog.Logger
}

const (
	defaultFileSize   = 64 << 20
	defaultMaxPending = 64 << 20
	defaultMarkDelay  = 250 * time.Millisecond
	never             = 1 << 62 // for a timer
	minFileSize       = 2 * blockSize
)

func (c Config) withDefaults() Config {
	if c.FileSize == 0 {
		c.FileSize = defaultFileSize
	}
	if c.MaxPending == 0 {
		c.MaxPending = defaultMaxPending
	}
	switch {
	case c.MarkDelay == 0:
		c.MarkDelay = defaultMarkDelay
	case c.MarkDelay < 0:
		c.MarkDelay = never
	}
	if c.ReadOnly && c.FS != nil {
		c.FS = vfs.ReadOnly(c.FS)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Validate reports every fault.
func (c Config) Validate() error {
	var faults []error
	if c.FS == nil {
		faults = append(faults, errors.New("FS is missing"))
	}
	if c.Dir == "" {
		faults = append(faults, errors.New("Dir is missing"))
	}
	if c.SyncInterval < 0 {
		faults = append(faults, fmt.Errorf("SyncInterval %v is negative", c.SyncInterval))
	}
	if c.FileSize != 0 && c.FileSize < minFileSize {
		faults = append(faults,
			fmt.Errorf("FileSize %d is below the least, %d bytes", c.FileSize, minFileSize))
	}
	if c.MaxPending < 0 {
		faults = append(faults, fmt.Errorf("MaxPending %d is negative", c.MaxPending))
	}
	return errors.Join(faults...)
}
