package backup

import "io/fs"

// errReadOnlyDisk is the error of a write to a disk that is read only.
var errReadOnlyDisk = fs.ErrPermission
