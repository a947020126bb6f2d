package wal

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by every call that needs a running log, after Close.
var ErrClosed = errors.New("the log is closed")

// ErrStalled is returned by Sequence, before fn was called, while the log waits for the disk
// space of its next file; it goes on by itself once there is room.
var ErrStalled = errors.New("the log waits for disk space: free some, and it goes on")

// ErrFormat says that this version of the program does not read the directory.
var ErrFormat = errors.New("unknown format of the data directory")

// ErrNewerFormat is the ErrFormat of a directory that a newer version of the program wrote.
var ErrNewerFormat = fmt.Errorf("%w: a newer runnel wrote it", ErrFormat)

// ErrNoLog says that a folder to be inspected is no data directory.
var ErrNoLog = errors.New("there is no runnel data here")

// errReadOnly is returned by Start for a log that was opened to be inspected.
var errReadOnly = errors.New("the log was opened for inspection only")

var errNotStarted = errors.New("the log is not started")

// PoisonedError says that a write or a sync of the log failed. Whether the frames that were
// pending then are on the disk is unknown: none of them is acknowledged, none is tried again,
// and the log takes no others. What was durable before stays readable.
type PoisonedError struct {
	Dir   string // of the log
	Cause error
}

func (e *PoisonedError) Error() string {
	return fmt.Sprintf("the log in %s takes no more writes: %v; what was acknowledged is safe: "+
		"check the disk and its free space, then start again", e.Dir, e.Cause)
}

// Unwrap returns the failure.
func (e *PoisonedError) Unwrap() error { return e.Cause }

// CorruptError says that something durable does not read as it was written. Start returns it
// and has changed nothing.
type CorruptError struct {
	File   string
	Offset int64 // in the file, of what does not verify
	LSN    LSN   // of that place; 0 where none can be said
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d (log position %d): %s; nothing was changed: "+
		"restore the data directory from a copy, or look for a failing disk",
		e.File, e.Offset, e.LSN, e.Reason)
}
