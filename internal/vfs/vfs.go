// Package vfs is the interface to file systems, with two implementations: the operating system's,
// and one in memory that can crash and fail for tests.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// ErrLocked reports that another process, or another part of this one, holds the lock.
var ErrLocked = errors.New("locked by another process")

// ErrGone reports that a locked folder was removed, renamed or replaced.
var ErrGone = errors.New("the folder is gone, or was replaced")

// ErrNoSpace reports that the disk is full.
var ErrNoSpace error = syscall.ENOSPC

// FS is the part of a file system that runnel uses. Names are slash-separated paths. Errors
// satisfy errors.Is with fs.ErrNotExist and fs.ErrExist. Safe for concurrent use.
//
// A file's data is durable after File.Sync. A change of names is durable after SyncDir of their
// folder.
type FS interface {
	// Create makes a file for reading and writing; an existing one is emptied.
	Create(name string) (File, error)
	// Open opens a file for reading and writing; fs.ErrNotExist.
	Open(name string) (File, error)
	// Remove removes a name, or an empty folder. Open handles of the file stay usable.
	Remove(name string) error
	// Rename gives a file another name, atomically; a file that had that name loses it.
	Rename(from, to string) error
	// Link gives a file a second name; fs.ErrExist if to exists.
	Link(from, to string) error
	// Mkdir makes a folder in an existing one, and leaves its name to SyncDir; fs.ErrExist,
	// fs.ErrNotExist.
	Mkdir(name string) error
	// MkdirAll makes a folder and its missing parents. It syncs the name of each new folder in
	// its parent.
	MkdirAll(name string) error
	// List returns the base names in a folder, sorted; fs.ErrNotExist.
	List(dir string) ([]string, error)
	// Stat describes a file or a folder; fs.ErrNotExist.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the names in a folder durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock on a file of that name, which it makes and leaves, and on the
	// folder that holds it: a removal of the file does not end the lock. ErrLocked if the
	// lock is taken. It ends with Close or with the process.
	Lock(name string) (Lock, error)
}

// Lock is a lock that is held.
type Lock interface {
	io.Closer
	// Check returns ErrGone if the path of the locked folder leads to another folder or to none,
	// as after a removal. Other errors are those of looking.
	Check() error
}

// File is an open file, safe for concurrent use, with fs.ErrClosed after Close.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns the length in bytes.
	Size() (int64, error)
	// Allocate makes the file at least size bytes long, with room on the disk for the added
	// bytes, which are 0.
	Allocate(size int64) error
	// Truncate cuts the file, or lengthens it with zeros without allocating room.
	Truncate(size int64) error
	// Sync makes the file's data and size durable (fdatasync). After an error the durable content
	// is unknown, even if a second Sync succeeds: write all data again that must be kept.
	Sync() error
}
