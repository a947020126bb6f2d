package wal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// foundFile is a log file found in the folder.
type foundFile struct {
	segment
	begun bool // its first block verifies, for the generation in its name
}

// logFiles holds all log files, by generation.
type logFiles []foundFile

func (files logFiles) highest() uint64 {
	if len(files) == 0 {
		return 0
	}
	return files[len(files)-1].generation
}

func (files logFiles) size(generation uint64) int64 {
	for _, f := range files {
		if f.generation == generation {
			return f.size
		}
	}
	return 0
}

func (files logFiles) has(generation uint64) bool {
	return slices.ContainsFunc(files, func(f foundFile) bool { return f.generation == generation })
}

// begun returns the files that hold frames. Each reaches to the beginning of the next.
func (files logFiles) begun() []segment {
	var begun []segment
	for _, f := range files {
		if f.begun {
			begun = append(begun, f.segment)
		}
	}
	return begun
}

// needed returns the files with frames that the snapshot does not cover, and the generations of
// all others.
func (files logFiles) needed(at LSN) (needed []segment, spares []uint64) {
	begun := files.begun()
	first := firstNeeded(begun, at)
	for _, f := range files {
		if f.begun && first >= 0 && f.generation >= begun[first].generation {
			needed = append(needed, f.segment)
		} else {
			spares = append(spares, f.generation)
		}
	}
	return needed, spares
}

// firstNeeded returns the index of the file that holds at, or -1.
func firstNeeded(begun []segment, at LSN) int {
	for i := len(begun) - 1; i >= 0; i-- {
		if begun[i].start <= at {
			return i
		}
	}
	return -1
}

// recovery reads the folder's snapshot and frames into the machines, at a start and for an
// inspection.
type recovery struct {
	folder   *folder
	machines map[Kind]Machine
}

// restore passes the newest snapshot to the machines and returns its LSN.
func (rec *recovery) restore() (LSN, error) {
	names, err := rec.folder.fs.List(rec.folder.dir)
	if err != nil {
		return 0, err
	}
	var at LSN
	found := false
	for _, name := range names { // sorted by number, since all numbers have the same width
		if lsn, ok := snapshotLSN(name); ok {
			at, found = lsn, true
		}
	}
	if found {
		if err := rec.restoreFrom(snapshotName(rec.folder.dir, at), at); err != nil {
			return 0, err
		}
	}
	return at, rec.folder.removeSnapshots(at)
}

func (rec *recovery) restoreFrom(name string, at LSN) error {
	f, err := rec.folder.fs.Open(name)
	if err != nil {
		return err
	}
	err = rec.restoreParts(f, at)
	if errors.Is(err, errSnapshot) {
		err = &CorruptError{File: name, LSN: at, Reason: err.Error()}
	}
	return errors.Join(err, f.Close())
}

func (rec *recovery) restoreParts(f vfs.File, at LSN) error {
	lsn, entries, err := readIndex(f)
	if err != nil {
		return err
	}
	if lsn != at {
		return fmt.Errorf("%w: it is of another place, %d", errSnapshot, lsn)
	}
	for _, e := range entries {
		machine := rec.machines[e.kind]
		if machine == nil {
			return fmt.Errorf("the snapshot holds a machine of kind %d, and there is none", e.kind)
		}
		data, err := readPart(f, e)
		if err != nil {
			return err
		}
		if err := machine.Restore(data); err != nil {
			return fmt.Errorf("restore machine %d: %w", e.kind, err)
		}
	}
	return nil
}

// tail describes the newest begun file; generation 0 means that there is none.
type tail struct {
	segment
	end   LSN  // of the valid frames: the end of the log
	lossy bool // see Life
}

// replay passes every frame from a place on to its machine, and returns the log's end.
func (rec *recovery) replay(ctx context.Context, files logFiles, from LSN) (tail, error) {
	begun := files.begun()
	first := firstNeeded(begun, from)
	if first < 0 {
		if from == 0 && len(begun) == 0 && rec.folder.format < formatNotes {
			// a new directory, or an interrupted first start
			return tail{}, rec.folder.checkUnbegun(files, 0, 0, note{})
		}
		return tail{}, rec.folder.gone(from)
	}
	at, last := from, len(begun)-1
	for i := first; i < last; i++ {
		var err error
		if at, err = rec.replayFile(ctx, begun[i], at, begun[i+1].start); err != nil {
			return tail{}, err
		}
	}
	return rec.replayLast(ctx, files, begun[last], at)
}

// replayFile replays a file that must reach to the beginning of the next one.
func (rec *recovery) replayFile(ctx context.Context, s segment, from, to LSN) (LSN, error) {
	err := rec.folder.withReader(s, from, func(r *reader) error {
		if _, err := rec.replayFrames(ctx, r, to); err != nil {
			return err
		}
		if r.lsn() != to {
			return rec.folder.corrupt(r, r.off, fmt.Sprintf(
				"no frame verifies here, and the next file goes on at log position %d", to))
		}
		return nil
	})
	return to, err
}

// replayLast replays the newest file up to its end, where it may have a torn tail, and makes the
// whole file durable. Before it changes anything, it checks that the announced file exists.
func (rec *recovery) replayLast(
	ctx context.Context, files logFiles, s segment, from LSN,
) (tail, error) {
	last := tail{segment: s}
	err := rec.folder.withReader(s, from, func(r *reader) error {
		synced, err := rec.replayFrames(ctx, r, ^LSN(0))
		if err != nil {
			return err
		}
		last.end = r.lsn()
		n, err := r.note()
		last.lossy = s.lossy(n, last.end)
		if err == nil {
			err = rec.folder.checkEnd(r, n)
		}
		if err == nil {
			err = rec.folder.checkAnnounced(files, s.generation, n)
		}
		if err == nil {
			err = rec.folder.checkUnbegun(files, s.generation, last.end, n)
		}
		if err == nil {
			err = r.harden(max(synced, from))
		}
		return err
	})
	return last, err
}

// replayFrames replays up to a place, or up to the first place without a valid frame. It returns
// the highest synced LSN that the frames record.
func (rec *recovery) replayFrames(ctx context.Context, r *reader, to LSN) (LSN, error) {
	var synced LSN
	for r.lsn() < to {
		f, ok, err := r.next()
		if err != nil || !ok {
			return synced, err
		}
		if err := ctx.Err(); err != nil {
			return synced, err
		}
		if err := rec.replayFrame(f); err != nil {
			return synced, err
		}
		synced = max(synced, f.synced)
	}
	return synced, nil
}

func (rec *recovery) replayFrame(f frame) error {
	if f.kind == kindMark {
		return nil
	}
	machine := rec.machines[f.kind]
	if machine == nil {
		return fmt.Errorf("the log holds a frame of kind %d, and there is no machine for it",
			f.kind)
	}
	if err := machine.Replay(f.end, f.payload); err != nil {
		return fmt.Errorf("replay the frame before log position %d to machine %d: %w",
			f.end, f.kind, err)
	}
	return nil
}
