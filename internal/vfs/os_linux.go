package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// fallocate takes room for [from, from+n), and makes the file that long. Some file systems
// cannot: errors.ErrUnsupported.
func fallocate(f *os.File, from, n int64) error {
	err := retry(f, func(fd int) error { return syscall.Fallocate(fd, 0, from, n) })
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return err
}

// datasync makes the data and the size durable, not the times, which saves a journal commit
// per call in a preallocated file.
func datasync(f *os.File) error { return retry(f, syscall.Fdatasync) }

// retry calls again what a signal has interrupted: that is no failure of the disk.
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
