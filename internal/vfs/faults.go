package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
)

// OpKind names an operation of FS or File.
type OpKind string

// The operations that a hook can see. Closing a file is not one of them.
const (
	OpCreate   OpKind = "create"
	OpOpen     OpKind = "open"
	OpRemove   OpKind = "remove"
	OpRename   OpKind = "rename"
	OpLink     OpKind = "link"
	OpMkdir    OpKind = "mkdir" // Mkdir and MkdirAll
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

// Changes reports whether the operation can change the disk or the durable state.
func (k OpKind) Changes() bool {
	switch k {
	case OpOpen, OpList, OpStat, OpRead, OpSize:
		return false
	default:
		return true
	}
}

// Op is an operation before its execution.
type Op struct {
	Kind OpKind
	Name string // of the file or folder, as it was opened
	To   string // the other name of a rename or a link
	Off  int64  // of a read or a write
	Len  int64  // of a read or a write; of an allocate or a truncate, the size
}

// String returns the operation as text.
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

// ErrInjected is the default failure of FailNth.
var ErrInjected = errors.New("injected fault")

// ShortWrite makes a write stop after N bytes with Err. It is an error for a hook to return.
type ShortWrite struct {
	N   int
	Err error
}

func (e *ShortWrite) Error() string { return fmt.Sprintf("after %d bytes: %v", e.N, e.Err) }

// Unwrap returns the failure.
func (e *ShortWrite) Unwrap() error { return e.Err }

// Inject returns fs with a hook that runs before each operation. If the hook returns an error,
// the operation fails with it; while the hook blocks, the operation waits. Many goroutines may
// call the hook at once; no lock is held.
//
// On a crashable Mem an injected failure of Sync behaves as on Linux: reads still return the
// data, but no later Sync makes it durable unless it is written again.
func Inject(fs FS, hook func(Op) error) FS { return &faultFS{fs, hook} }

// FailNth returns a hook that fails the nth operation accepted by match, once. n counts from 1.
// The error is err, or ErrInjected if err is nil.
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

func (f *faultFS) Mkdir(name string) error {
	if err := f.hook(Op{Kind: OpMkdir, Name: name}); err != nil {
		return err
	}
	return f.fs.Mkdir(name)
}

func (f *faultFS) MkdirAll(name string) error {
	if err := f.hook(Op{Kind: OpMkdir, Name: name}); err != nil {
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

func (f *faultFS) Lock(name string) (Lock, error) {
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
