package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// fallocate allocates room for [from, from+n) and makes the file that long. On a file system
// without it, the error is errors.ErrUnsupported.
func fallocate(f *os.File, from, n int64) error {
	err := retry(f, func(fd int) error { return syscall.Fallocate(fd, 0, from, n) })
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// datasync makes the data and the size durable, but not the times. In a preallocated file that
// saves a journal commit per call.
func datasync(f *os.File) error { return retry(f, syscall.Fdatasync) }

// retry repeats a call that a signal has interrupted: such an error is no failure of the disk.
func retry(f *os.File, call func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = raw.Control(func(fd uintptr) {
		for {
			if result = call(int(fd)); !errors.Is(result, syscall.EINTR) {
				return
			}
		}
	})
	if err != nil {
		return fs.ErrClosed // the one reason for which Control does not call
	}
	return result
}
