package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
)

// OpKind names an operation of FS or File.
type OpKind string

// The operations that a hook sees; closing is not one.
const (
	OpCreate   OpKind = "create"
	OpOpen     OpKind = "open"
	OpRemove   OpKind = "remove"
	OpRename   OpKind = "rename"
	OpLink     OpKind = "link"
	OpMkdirAll OpKind = "mkdir"
	OpList     OpKind = "list"
	OpStat     OpKind = "stat"
	OpSyncDir  OpKind = "syncdir"
	OpLock     OpKind = "lock"
	OpRead     OpKind = "read"
	OpWrite    OpKind = "write"
	OpSize     OpKind = "size"
	OpAllocate OpKind = "allocate"
	OpTruncate OpKind = "truncate"
	OpSync     OpKind = "sync"
)

// Changes reports whether the operation can change what is on the disk, or is durable there.
func (k OpKind) Changes() bool {
	switch k {
	case OpOpen, OpList, OpStat, OpRead, OpSize:
		return false
	default:
		return true
	}
}

// Op is an operation that is about to happen.
type Op struct {
	Kind OpKind
	Name string // of the file or folder, as it was opened
	To   string // of a rename or a link: the other name
	Off  int64  // of a read or a write
	Len  int64  // of a read or a write; of an allocate or a truncate, the size
}

// String returns the operation for people.
func (o Op) String() string {
	switch o.Kind {
	case OpRename, OpLink:
		return fmt.Sprintf("%s %s %s", o.Kind, o.Name, o.To)
	case OpRead, OpWrite:
		return fmt.Sprintf("%s %s [%d,%d)", o.Kind, o.Name, o.Off, o.Off+o.Len)
	case OpAllocate, OpTruncate:
		return fmt.Sprintf("%s %s %d", o.Kind, o.Name, o.Len)
	default:
		return fmt.Sprintf("%s %s", o.Kind, o.Name)
	}
}

// ErrInjected is the failure that FailNth gives by default.
var ErrInjected = errors.New("injected fault")

// ShortWrite as a hook's error makes a write stop after N bytes, with Err.
type ShortWrite struct {
	N   int
	Err error
}

func (e *ShortWrite) Error() string { return fmt.Sprintf("after %d bytes: %v", e.N, e.Err) }

// Unwrap returns the failure.
func (e *ShortWrite) Unwrap() error { return e.Err }

// Inject returns fs with a hook before each operation. The operation fails with the hook's
// error, if it has one, and waits for as long as the hook does. The hook is called by many
// goroutines at once, with no lock held.
//
// A Sync that fails so on a crashable Mem fails as on Linux: the data can still be read, yet
// no later Sync makes it durable, only writing it again does.
func Inject(fs FS, hook func(Op) error) FS { return &faultFS{fs, hook} }

// FailNth returns a hook that fails the nth operation (from 1 on) that match accepts, once,
// with err, or ErrInjected if that is nil.
func FailNth(n int, match func(Op) bool, err error) func(Op) error {
	if err == nil {
		err = ErrInjected
	}
	var seen atomic.Int64
	return func(op Op) error {
		if match(op) && seen.Add(1) == int64(n) {
			return fmt.Errorf("%s: %w", op, err)
		}
		return nil
	}
}

type faultFS struct {
	fs   FS
	hook func(Op) error
}

func (f *faultFS) Create(name string) (File, error) {
	return f.file(Op{Kind: OpCreate, Name: name}, f.fs.Create)
}

func (f *faultFS) Open(name string) (File, error) {
	return f.file(Op{Kind: OpOpen, Name: name}, f.fs.Open)
}

func (f *faultFS) file(op Op, do func(string) (File, error)) (File, error) {
	if err := f.hook(op); err != nil {
		return nil, err
	}
	file, err := do(op.Name)
	if err != nil {
		return nil, err
	}
	return &faultFile{file, f.hook, op.Name}, nil
}

func (f *faultFS) Remove(name string) error {
	if err := f.hook(Op{Kind: OpRemove, Name: name}); err != nil {
		return err
	}
	return f.fs.Remove(name)
}

func (f *faultFS) Rename(from, to string) error {
	if err := f.hook(Op{Kind: OpRename, Name: from, To: to}); err != nil {
		return err
	}
	return f.fs.Rename(from, to)
}

func (f *faultFS) Link(from, to string) error {
	if err := f.hook(Op{Kind: OpLink, Name: from, To: to}); err != nil {
		return err
	}
	return f.fs.Link(from, to)
}

func (f *faultFS) MkdirAll(name string) error {
	if err := f.hook(Op{Kind: OpMkdirAll, Name: name}); err != nil {
		return err
	}
	return f.fs.MkdirAll(name)
}

func (f *faultFS) List(dir string) ([]string, error) {
	if err := f.hook(Op{Kind: OpList, Name: dir}); err != nil {
		return nil, err
	}
	return f.fs.List(dir)
}

func (f *faultFS) Stat(name string) (fs.FileInfo, error) {
	if err := f.hook(Op{Kind: OpStat, Name: name}); err != nil {
		return nil, err
	}
	return f.fs.Stat(name)
}

func (f *faultFS) SyncDir(dir string) error {
	if err := f.hook(Op{Kind: OpSyncDir, Name: dir}); err != nil {
		return err
	}
	return f.fs.SyncDir(dir)
}

func (f *faultFS) Lock(name string) (io.Closer, error) {
	if err := f.hook(Op{Kind: OpLock, Name: name}); err != nil {
		return nil, err
	}
	return f.fs.Lock(name)
}

type faultFile struct {
	File
	hook func(Op) error
	name string
}

func (f *faultFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.hook(Op{Kind: OpRead, Name: f.name, Off: off, Len: int64(len(p))}); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.hook(Op{Kind: OpWrite, Name: f.name, Off: off, Len: int64(len(p))})
	if err == nil {
		return f.File.WriteAt(p, off)
	}
	var short *ShortWrite
	if !errors.As(err, &short) {
		return 0, err
	}
	n, failed := f.File.WriteAt(p[:min(max(short.N, 0), len(p))], off)
	return n, errors.Join(err, failed)
}

func (f *faultFile) Size() (int64, error) {
	if err := f.hook(Op{Kind: OpSize, Name: f.name}); err != nil {
		return 0, err
	}
	return f.File.Size()
}

func (f *faultFile) Allocate(size int64) error {
	if err := f.hook(Op{Kind: OpAllocate, Name: f.name, Len: size}); err != nil {
		return err
	}
	return f.File.Allocate(size)
}

func (f *faultFile) Truncate(size int64) error {
	if err := f.hook(Op{Kind: OpTruncate, Name: f.name, Len: size}); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultFile) Sync() error {
	if err := f.hook(Op{Kind: OpSync, Name: f.name}); err != nil {
		if mem, ok := f.File.(*memFile); ok {
			mem.failSync()
		}
		return err
	}
	return f.File.Sync()
}
