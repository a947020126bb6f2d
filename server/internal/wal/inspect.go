package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	// Spare is damage that a start does without: to a snapshot beside a whole one, or to the log
	// between the two.
	Spare []*CorruptError
	Lost  []LostFrames
	// Without lists the machines of which no snapshot is whole, although the log does not reach
	// back to its beginning. Their state is lost.
	Without []Kind
}

// LostFrames is a part of the log without a whole frame: one or more frames are lost.
type LostFrames struct {
	File     string
	Offset   int64
	From, To LSN
	Kind     Kind // of the one frame; 0 if unknown
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
	in := &inspector{
		folder: &l.folder, recovery: l.recovery(), silent: map[Kind]bool{}, bases: map[Kind]LSN{},
		adopted: map[uint64]*CorruptError{}, base: l.cfg.Base,
	}
	in.found.Format = l.folder.format
	if err := in.inspect(ctx); err != nil {
		return nil, fmt.Errorf("inspect the log in %s: %w", l.cfg.Dir, err)
	}
	l.inspected = in
	return &in.found, nil
}

// inspector holds the state of one Inspect call.
type inspector struct {
	folder   *folder
	recovery *recovery
	found    Inspection
	ended    note          // of the newest file
	silent   map[Kind]bool // machines that have refused a frame
	bases    map[Kind]LSN  // of the snapshots that the machines have
	highest  uint64        // generation, also of a file that was only announced
	adopted  map[uint64]*CorruptError
	base     Base // Config.Base
	// With second set, a start could also begin at the snapshot older: see between.
	second bool
	older  LSN
}

func (in *inspector) inspect(ctx context.Context) error {
	files, err := in.folder.listFiles()
	if errors.Is(err, fs.ErrNotExist) {
		files, err = nil, nil
	}
	if err == nil {
		err = in.adopt(files)
	}
	if err == nil {
		err = in.snapshots(files)
	}
	if err != nil {
		return err
	}
	in.highest = max(in.highest, files.highest())
	return errors.Join(in.files(ctx, files), in.between(ctx, files))
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
