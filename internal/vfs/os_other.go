//go:build !linux

package vfs

import (
	"errors"
	"os"
)

func fallocate(*os.File, int64, int64) error { return errors.ErrUnsupported }

// datasync is os.File's Sync, which on macOS empties the disk's own cache too.
func datasync(f *os.File) error { return f.Sync() }

// syncTogether does nothing: only Linux can sync one file system.
func syncTogether([]File) (n int, done bool, err error) { return 0, false, nil }
