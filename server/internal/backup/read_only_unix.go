//go:build unix

package backup

import "syscall"

// errReadOnlyDisk is the error of a write to a file system that was mounted for reading.
var errReadOnlyDisk error = syscall.EROFS
