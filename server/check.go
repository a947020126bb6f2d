package server

import (
	"context"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/fsck"
	"github.com/runnel-stream/runnel/server/internal/kinesis"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// Errors of Check.
var (
	// ErrNoData means that a folder is no data directory.
	ErrNoData = wal.ErrNoLog
	// ErrNewerFormat means that a newer version has written the data directory.
	ErrNewerFormat = wal.ErrNewerFormat
	// ErrInUse means that a server is using the data directory.
	ErrInUse = vfs.ErrLocked
)

// CheckReport is the result of Check.
type CheckReport = fsck.Report

// Check reads a data directory with every checksum, and changes nothing. It holds the directory's
// lock meanwhile. Damage is in the report and no error; errors are ErrNoData, ErrNewerFormat,
// ErrInUse, ctx's, and those of reading.
func Check(ctx context.Context, dir string) (*CheckReport, error) {
	return fsck.Check(ctx, vfs.OS{}, dir)
}

// RepairReport is the result of Repair.
type RepairReport = fsck.RepairReport

// Repair saves everything whole in a damaged data directory, makes it sound again, and lists the
// losses in its report and in a file of the directory. Without write it changes nothing, and
// reports what it would do. A crash leaves the directory as it was or repaired. Errors: those of
// Check, and those of writing.
func Repair(ctx context.Context, dir string, write bool) (*RepairReport, error) {
	return fsck.Repair(ctx, vfs.OS{}, dir, write, kinesis.SequenceNumber)
}
