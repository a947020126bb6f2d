package main

import (
	"os"
	"syscall"
)

// syncData syncs what a file holds, and of its metadata only what reading that needs.
func syncData(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }
