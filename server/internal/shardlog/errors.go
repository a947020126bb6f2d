package shardlog

import (
	"errors"
	"fmt"
)

var (
	// ErrSealed is returned by Append for a shard that is closed for appends.
	ErrSealed = errors.New("the shard is closed: append to its children")
	// ErrDeleted is returned for a shard that was deleted.
	ErrDeleted = errors.New("the shard was deleted")
	// ErrClosed is returned by Read, IndexAt and Wait after Store.Close.
	ErrClosed = errors.New("the record store is closed")
	// ErrBatch is returned by Append for a batch that no frame can hold.
	ErrBatch = errors.New("the batch cannot be stored")
	// ErrStalled is wrapped by the errors of Store.Err and Append while segments cannot be
	// written: no acknowledged record is lost, and the drainer keeps trying.
	ErrStalled = errors.New("segments cannot be written; free space on the disk or repair it, " +
		"and appending goes on by itself")
	// ErrSync is wrapped by the errors of Store.Err, Append and checkpoints once a segment could
	// not be synced: no acknowledged record is lost, and a restart writes it again.
	ErrSync = errors.New("a segment could not be synced; check the disk and restart, " +
		"which writes the segment again from the log")
	// ErrCorrupt is wrapped by a *CorruptError.
	ErrCorrupt = errors.New("a segment file is damaged")
	// ErrFormat is returned at a start for a snapshot or a log frame of an unknown format.
	ErrFormat = errors.New("not a record log of this version")
)

// CorruptError reports bytes of a segment file that differ from the written ones.
type CorruptError struct {
	File   string // the segment file
	Offset int64  // of the bad frame
	Index  uint64 // of the record that belongs there
	Next   uint64 // the first record behind this file: reading may continue there
	Reason string

	foreign bool // the file may be of another data directory: nothing behind is of this shard
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%v: %s at offset %d, record %d of the shard: %s; restore the file from "+
		"a copy, or read on after it, from record %d",
		ErrCorrupt, e.File, e.Offset, e.Index, e.Reason, e.Next)
}

// Unwrap makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }
