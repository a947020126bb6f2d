//go:build unix && !aix && !solaris

package vfs

import (
	"errors"
	"os"
	"syscall"
)

var errNotDir error = syscall.ENOTDIR

// lockFile takes a lock that belongs to the open file and not to the process, so that two parts
// of one process exclude each other too.
func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrLocked
		default:
			return err
		}
	}
}

// lockFolder locks the folder itself, so that a removal of the lock's file does not end the lock. A network file system may not lock folders; there the file's lock must do.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = lockFile(f)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, ErrLocked):
		return nil, errors.Join(err, f.Close())
	default:
		return nil, f.Close()
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
