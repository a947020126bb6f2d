package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// Inspection is the result of Inspect for a log's directory.
type Inspection struct {
	Format   int
	Snapshot SnapshotFile // the newest; zero if there is none
	Files    []LogFile    // by generation
	Marks    int          // frames that only record a sync
	Synced   LSN          // the log is known to have been synced up to here
	End      LSN          // where the log ends
	Torn     *TornFrame   // the unfinished frame at the end; nil if it cannot be recognised
	Lossy    bool         // as Log.Life would return it
	Leftover []string     // files of the log without use: the next start removes them
	Damage   []*CorruptError
}

// SnapshotFile is a snapshot on the disk.
type SnapshotFile struct {
	Name string
	LSN  LSN
	Size int64
}

// LogFile is a log file on the disk.
type LogFile struct {
	Name   string
	Size   int64
	Spare  bool // none of its frames is needed: the log keeps it for reuse
	Start  LSN  // of the first needed frame, if it is no spare
	Frames int  // valid frames among the needed ones
}

// TornFrame is a frame at the end of the log with a valid header and an incomplete payload. It
// was never acknowledged.
type TornFrame struct {
	File   string
	Offset int64
	Size   int // of the whole frame
}

// Inspect reads all files that Start would read into the registered machines, and also the files
// that Start skips. It changes nothing. It lists damage and continues. A frame that a machine
// refuses is damage too; that machine then gets no further frames. Call it once, on a log opened
// with Config.ReadOnly. Errors: ctx's and the file system's.
func (l *Log) Inspect(ctx context.Context) (*Inspection, error) {
	if !l.cfg.ReadOnly {
		return nil, errors.New("inspect the log: it was not opened for that")
	}
	in := &inspector{folder: &l.folder, recovery: l.recovery(), silent: map[Kind]bool{}}
	in.found.Format = l.folder.format
	if err := in.inspect(ctx); err != nil {
		return nil, fmt.Errorf("inspect the log in %s: %w", l.cfg.Dir, err)
	}
	return &in.found, nil
}

// inspector holds the state of one Inspect call.
type inspector struct {
	folder   *folder
	recovery *recovery
	found    Inspection
	ended    note          // of the newest file
	silent   map[Kind]bool // machines that have refused a frame
}

func (in *inspector) inspect(ctx context.Context) error {
	if err := in.snapshot(); err != nil {
		return err
	}
	files, err := in.folder.listFiles()
	if errors.Is(err, fs.ErrNotExist) {
		files, err = nil, nil
	}
	if err != nil {
		return err
	}
	return in.files(ctx, files)
}

// damaged lists err and returns nil if err reports damage; it returns any other error.
func (in *inspector) damaged(err error) error {
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		in.found.Damage = append(in.found.Damage, corrupt)
		return nil
	}
	return err
}

// snapshot reads the newest snapshot.
func (in *inspector) snapshot() error {
	names, err := in.folder.fs.List(in.folder.dir)
	if err != nil {
		return err
	}
	newest := -1
	for i, name := range names {
		if _, ok := snapshotLSN(name); ok {
			newest = i
		}
	}
	for i, name := range names {
		if i != newest && isOurs(name) {
			in.found.Leftover = append(in.found.Leftover, path.Join(in.folder.dir, name))
		}
	}
	if newest < 0 {
		return nil
	}
	at, _ := snapshotLSN(names[newest])
	name := snapshotName(in.folder.dir, at)
	info, err := in.folder.fs.Stat(name)
	if err != nil {
		return err
	}
	in.found.Snapshot = SnapshotFile{Name: name, LSN: at, Size: info.Size()}
	f, err := in.folder.fs.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(in.parts(f, name, at), f.Close())
}

// parts passes each machine its part of the snapshot if the part verifies.
func (in *inspector) parts(f vfs.File, name string, at LSN) error {
	bad := func(err error) error {
		for kind := range in.recovery.machines {
			in.silent[kind] = true // its frames mean nothing without the snapshot
		}
		return in.damaged(&CorruptError{File: name, LSN: at, Reason: err.Error()})
	}
	lsn, entries, err := readIndex(f)
	switch {
	case errors.Is(err, errSnapshot):
		return bad(err)
	case err != nil:
		return err
	case lsn != at:
		return bad(fmt.Errorf("%w: it is of another place, %d", errSnapshot, lsn))
	}
	for _, e := range entries {
		data, err := readPart(f, e)
		if err != nil && !errors.Is(err, errSnapshot) {
			return err
		}
		switch machine := in.recovery.machines[e.kind]; {
		case err != nil:
		case machine == nil:
			err = fmt.Errorf("it holds a machine of kind %d, and there is none", e.kind)
		default:
			err = machine.Restore(data)
		}
		if err != nil {
			in.silent[e.kind] = true
			corrupt := &CorruptError{File: name, Offset: e.off, LSN: at, Reason: err.Error()}
			if err := in.damaged(corrupt); err != nil {
				return err
			}
		}
	}
	return nil
}

// isOurs reports whether a start removes a file of this name, unless it is the newest snapshot.
func isOurs(name string) bool {
	_, ok := snapshotLSN(strings.TrimSuffix(name, tempSuffix))
	return ok
}
