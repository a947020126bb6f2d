package vfs

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

var errNotDir error = syscall.ENOTDIR

func lockFile(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// lockFolder does nothing: Windows does not remove a file that is open.
func lockFolder(string) (*os.File, error) { return nil, nil }

// syncDir does nothing: Windows keeps names in its file system's own journal and has no call
// that waits for it.
func syncDir(string) error { return nil }
