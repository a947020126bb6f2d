package server

import (
	"context"

	"github.com/runnel-stream/runnel/server/internal/backup"
)

// Errors of Backup about its target; nothing was written.
var (
	// ErrTargetExists means that the target is there already, and is no empty folder.
	ErrTargetExists = backup.ErrExists
	// ErrTargetInside means that the target is inside the data directory.
	ErrTargetInside = backup.ErrInside
	// ErrTargetEnding means that the target's name ends as a packed file of another kind, as x.zip.
	ErrTargetEnding = backup.ErrEnding
	// ErrTargetParent means that the folder around the target is missing, or is no folder.
	ErrTargetParent = backup.ErrParent
)

// BackupReport is the result of Backup.
type BackupReport = backup.Report

// Backup copies a data directory, also while a server uses it. The target to is a file if its name
// ends with .tar.zst, .tar.gz or .tgz, and otherwise a folder, which must be new or empty. The
// folder around it must exist. The copy is durable when Backup returns, and holds every record that
// was acknowledged before the call. A start of a server on it skips sequence numbers. Damage to the
// directory is in the report, and no error: the rest is copied. Errors: ErrTargetExists,
// ErrTargetInside, ErrTargetEnding, ErrTargetParent, ErrNoData, ErrNewerFormat, ErrInUse if another
// backup runs, ctx's, and those of files.
func Backup(ctx context.Context, dir, to string) (*BackupReport, error) {
	return backup.To(ctx, dir, to)
}
