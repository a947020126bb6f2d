package main

import (
	"os"
	"syscall"
)

// syncData syncs a file's data and only the metadata that reading needs.
func syncData(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }
