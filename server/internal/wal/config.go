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
	// Dir is the log's folder. Open makes it if it does not exist. Required.
	Dir string
	// SyncInterval is the time between two syncs. Above 0, frames count as durable once they are
	// written: a power loss can then undo the frames of one interval although they were
	// acknowledged; a crash of the process undoes none. Frames of Tx.AppendSynced are always
	// synced first. Default 0: a sync before every acknowledgement, shared by group commit.
	SyncInterval time.Duration
	// FileSize is the length of a log file, allocated in advance, and the number of bytes between
	// two checkpoints. A frame that is larger gets a larger file. In bytes, at least 8 KiB;
	// default 64 MiB.
	FileSize int64
	// MaxPending is the number of bytes that may be pending or held before Sequence waits. In
	// bytes; default 64 MiB.
	MaxPending int64
	// MarkDelay is the pause after the last synced frame until the log writes a mark: an empty
	// frame that records that sync. The mark lets the next start distinguish damage to the last
	// batch from a torn tail. Default 250 ms; below 0: no marks.
	MarkDelay time.Duration
	// Inline commits on the caller's goroutine before Sequence returns. It is for an FS that does
	// not block on writes, such as one in memory: there, waking a committer costs more than the
	// commit itself. Default false.
	Inline bool
	// KeepOne keeps the newest snapshot alone, and the log behind it. It is for an FS in memory,
	// which does not rot. Default false: the snapshot before it is kept too, with the log from
	// there on, so that a start does without a damaged one.
	KeepOne bool
	// ReadOnly opens the log for Inspect alone. The log then writes no file, not even LOCK.
	ReadOnly bool
	// Salvage opens the log for Inspect and then Rebase: it needs no FORMAT, and Inspect offers
	// damaged frames to machines that implement Salvager. It implies ReadOnly until Rebase.
	Salvage bool
	// Base is the state with which Inspect begins. It replays the log from there: the frames also
	// hold the records that a newer snapshot only refers to. Default BaseNewest.
	Base Base
	// Logger gets the failures of background work, which the log retries: checkpoints and new
	// files. Default slog.Default().
	Logger *slog.Logger
}

// Base is a state with which an inspection begins.
type Base int

// The bases, from the newest to the oldest. Each falls back to the one before it.
const (
	BaseNewest Base = iota // the newest snapshot
	BaseOlder              // the snapshot before it, if both are whole
	BaseEmpty              // no snapshot, if the log reaches back to its beginning
)

const (
	defaultFileSize   = 64 << 20
	defaultMaxPending = 64 << 20
	defaultMarkDelay  = 250 * time.Millisecond
	never             = 1 << 62 // the duration of a timer that never fires
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
	if c.Salvage {
		c.ReadOnly = true
	} else if c.ReadOnly && c.FS != nil {
		c.FS = vfs.ReadOnly(c.FS)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Validate reports every fault of the configuration.
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
