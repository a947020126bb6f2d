package vfs

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// togetherFrom is the number of files from which one sync of their file system is preferred: so
// many syncs take longer, and fewer are not worth the data of other programs.
const togetherFrom = 64

// syncedTogether has the file systems with a complete syncfs: it writes all files, and commits
// their metadata. FUSE does not pass the call on, and older overlays did not sync the layer below.
var syncedTogether = map[int64]bool{
	unix.EXT4_SUPER_MAGIC:  true, // ext2 and ext3, too
	unix.XFS_SUPER_MAGIC:   true,
	unix.BTRFS_SUPER_MAGIC: true,
	unix.F2FS_SUPER_MAGIC:  true,
	unix.TMPFS_MAGIC:       true,
}

// checkWrites returns an error if a write of the file's data has failed since the last such check
// or sync of this handle. It is a variable for a test: a real disk does not fail on request.
var checkWrites = func(fd int) error {
	return unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WAIT_BEFORE)
}

// syncTogether syncs the files by one syncfs. done is false if it cannot say that they are durable;
// a Sync of each then can, since no error of a file has been taken from it.
//
// Kernels before 5.8 do not report failed writes of data by syncfs, and those before 5.17 do not
// report a failed journal. So it asks each file for its own failed writes by sync_file_range, which
// neither writes nor flushes here (mm/filemap.c). Then it syncs one file. That fails if the journal
// has been aborted, and flushes the device.
func syncTogether(files []File) (n int, done bool, err error) {
	if len(files) < togetherFrom || !oneFileSystem(files) {
		return 0, false, nil
	}
	if err := retry(inner(files[0]).(osFile).File, unix.Syncfs); err != nil {
		return 0, false, nil //nolint:nilerr // a Sync of each file finds the one that failed
	}
	for i, file := range files {
		f := inner(file).(osFile)
		err := retry(f.File, checkWrites)
		if i == 0 && (errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)) {
			return 0, false, nil // a sandbox without the call
		}
		if err != nil {
			return i, true, &fs.PathError{Op: "sync", Path: f.Name(), Err: err}
		}
	}
	if err := files[0].Sync(); err != nil {
		return 0, true, err
	}
	return len(files), true, nil
}

// oneFileSystem reports whether all files are on one file system of syncedTogether.
func oneFileSystem(files []File) bool {
	var device uint64
	for i, file := range files {
		f, ok := inner(file).(osFile)
		if !ok {
			return false
		}
		var stat unix.Stat_t
		if err := retry(f.File, func(fd int) error { return unix.Fstat(fd, &stat) }); err != nil {
			return false
		}
		if i > 0 && stat.Dev != device {
			return false
		}
		device = stat.Dev
	}
	var stat unix.Statfs_t
	first := inner(files[0]).(osFile)
	err := retry(first.File, func(fd int) error { return unix.Fstatfs(fd, &stat) })
	return err == nil && syncedTogether[stat.Type]
}
