package wal

import (
	"errors"
	"fmt"
)

// ErrClosed is the error of every call that needs a running log after Close.
var ErrClosed = errors.New("the log is closed")

// ErrNoLastCheckpoint is returned by Close if all frames are durable, and only the last checkpoint
// failed, as on a full disk.
var ErrNoLastCheckpoint = errors.New("nothing is lost, since the log on the disk has everything; " +
	"the next start reads it again, because the last checkpoint failed")

// ErrStalled is returned by Sequence, which then has not called fn, while the log waits for disk
// space. The log resumes by itself once there is room.
var ErrStalled = errors.New("the log waits for disk space: free some, and it goes on")

// ErrFormat reports that this version of the program cannot read the directory.
var ErrFormat = errors.New("unknown format of the data directory")

// ErrNewerFormat is the ErrFormat of a directory that a newer version of the program wrote.
var ErrNewerFormat = fmt.Errorf("%w: a newer runnel wrote it", ErrFormat)

// ErrNoLog reports that a folder to be inspected is no data directory.
var ErrNoLog = errors.New("there is no runnel data here")

// errReadOnly is returned by Start for a log that was opened to be inspected.
var errReadOnly = errors.New("the log was opened for inspection only")

var errNotStarted = errors.New("the log is not started")

// PoisonedError reports that a write or a sync of the log failed. It is then unknown whether the
// pending frames are on the disk. The log acknowledges none of them, retries none, and takes no
// others. Frames that were durable before the failure stay readable.
type PoisonedError struct {
	Dir   string // of the log
	Cause error
}

func (e *PoisonedError) Error() string {
	if errors.Is(e.Cause, ErrGone) {
		return fmt.Sprintf("the log in %s takes no more writes: %v; nothing that is "+
			"written now would be found again: put the directory back and start again",
			e.Dir, e.Cause)
	}
	return fmt.Sprintf("the log in %s takes no more writes: %v; what was acknowledged is safe: "+
		"check the disk and its free space, then start again", e.Dir, e.Cause)
}

// Unwrap returns the failure.
func (e *PoisonedError) Unwrap() error { return e.Cause }

// CorruptError reports that a durable file does not read as it was written. A Start that returns
// it has changed nothing.
type CorruptError struct {
	File   string
	Offset int64 // in the file, of the place that does not verify
	LSN    LSN   // of that place; 0 if unknown
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d (log position %d): %s; nothing was changed: "+
		"restore the data directory from a copy, or look for a failing disk",
		e.File, e.Offset, e.LSN, e.Reason)
}
