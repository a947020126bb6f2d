// Package vfs is the file-system seam: the operating system's, and one in memory that can
// crash and fail.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// ErrLocked says that another process, or another part of this one, holds the lock.
var ErrLocked = errors.New("locked by another process")

// ErrNoSpace says that the disk is full.
var ErrNoSpace error = syscall.ENOSPC

// FS is the part of a file system that runnel uses. Names are slash-separated paths. Errors
// satisfy errors.Is with fs.ErrNotExist and fs.ErrExist. Safe for concurrent use.
//
// A file's data is durable after File.Sync; its name, or the lack of one, after SyncDir of
// its folder.
type FS interface {
	// Create makes a file for reading and writing; an existing one is emptied.
	Create(name string) (File, error)
	// Open opens a file for reading and writing; fs.ErrNotExist.
	Open(name string) (File, error)
	// Remove takes a name away, or an empty folder. Open files of that name stay usable.
	Remove(name string) error
	// Rename gives a file another name, and replaces what had that name, atomically.
	Rename(from, to string) error
	// Link gives a file a second name; fs.ErrExist if to is there.
	Link(from, to string) error
	// MkdirAll makes a folder and those above it, and syncs every folder that it made in its
	// parent.
	MkdirAll(name string) error
	// List returns the base names in a folder, sorted; fs.ErrNotExist.
	List(dir string) ([]string, error)
	// Stat describes a file or a folder; fs.ErrNotExist.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the names in a folder durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock that dies with the process, on a file of that name, which
	// is made and stays; ErrLocked if another has it. Closing releases the lock.
	Lock(name string) (io.Closer, error)
}

// File is an open file, safe for concurrent use, with fs.ErrClosed after Close.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns the length in bytes.
	Size() (int64, error)
	// Allocate makes the file at least size bytes long, with room on the disk for the bytes
	// that it adds; these are 0.
	Allocate(size int64) error
	// Truncate cuts the file, or lengthens it by zeros without room for them.
	Truncate(size int64) error
	// Sync makes the file's data and size durable (fdatasync). After an error nobody knows
	// what is durable, and a second Sync that succeeds does not tell either: write again what
	// is to be kept.
	Sync() error
}
