package wal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
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

// restore passes the newest snapshot to the machines and returns its LSN.
func (l *Log) restore() (LSN, error) {
	names, err := l.fs.List(l.cfg.Dir)
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
		if err := l.restoreFrom(snapshotName(l.cfg.Dir, at), at); err != nil {
			return 0, err
		}
	}
	return at, l.removeSnapshots(at)
}

func (l *Log) restoreFrom(name string, at LSN) error {
	f, err := l.fs.Open(name)
	if err != nil {
		return err
	}
	err = l.restoreParts(f, at)
	if errors.Is(err, errSnapshot) {
		err = &CorruptError{File: name, LSN: at, Reason: err.Error()}
	}
	return errors.Join(err, f.Close())
}

func (l *Log) restoreParts(f vfs.File, at LSN) error {
	lsn, entries, err := readIndex(f)
	if err != nil {
		return err
	}
	if lsn != at {
		return fmt.Errorf("%w: it is of another place, %d", errSnapshot, lsn)
	}
	for _, e := range entries {
		machine := l.machines[e.kind]
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

func (l *Log) listFiles() (logFiles, error) {
	names, err := l.fs.List(path.Join(l.cfg.Dir, walDir))
	if err != nil {
		return nil, err
	}
	var files logFiles
	for _, name := range names {
		generation, ok := generationOf(name)
		if !ok {
			continue
		}
		f, err := l.lookAt(generation)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b foundFile) int {
		return cmp.Compare(a.generation, b.generation)
	})
	return files, nil
}

func (l *Log) lookAt(generation uint64) (foundFile, error) {
	var f foundFile
	file, err := l.fs.Open(fileName(l.cfg.Dir, generation))
	if err != nil {
		return f, err
	}
	p := make([]byte, blockUsed)
	n := 0
	size, err := file.Size()
	if err == nil {
		if n, err = file.ReadAt(p, 0); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	f.segment, f.begun = decodeBlock(p[:n], generation)
	f.generation, f.size = generation, size
	return f, errors.Join(err, file.Close())
}

// tail describes the newest begun file; generation 0 means that there is none.
type tail struct {
	segment
	end   LSN  // of the valid frames: the end of the log
	lossy bool // see Life
}

// replay passes every frame from a place on to its machine, and returns the log's end.
func (l *Log) replay(ctx context.Context, files logFiles, from LSN) (tail, error) {
	begun := files.begun()
	first := firstNeeded(begun, from)
	if first < 0 {
		if from == 0 && len(begun) == 0 && l.format < formatNotes {
			// a new directory, or an interrupted first start
			return tail{}, l.checkUnbegun(files, 0, 0, note{})
		}
		return tail{}, l.gone(from)
	}
	at, last := from, len(begun)-1
	for i := first; i < last; i++ {
		var err error
		if at, err = l.replayFile(ctx, begun[i], at, begun[i+1].start); err != nil {
			return tail{}, err
		}
	}
	return l.replayLast(ctx, files, begun[last], at)
}

// replayFile replays a file that must reach to the beginning of the next one.
func (l *Log) replayFile(ctx context.Context, s segment, from, to LSN) (LSN, error) {
	err := l.withReader(s, from, func(r *reader) error {
		if _, err := l.replayFrames(ctx, r, to); err != nil {
			return err
		}
		if r.lsn() != to {
			return l.corrupt(r, r.off, fmt.Sprintf(
				"no frame verifies here, and the next file goes on at log position %d", to))
		}
		return nil
	})
	return to, err
}

// replayLast replays the newest file up to its end, where it may have a torn tail, and makes the
// whole file durable. Before it changes anything, it checks that the announced file exists.
func (l *Log) replayLast(ctx context.Context, files logFiles, s segment, from LSN) (tail, error) {
	last := tail{segment: s}
	err := l.withReader(s, from, func(r *reader) error {
		synced, err := l.replayFrames(ctx, r, ^LSN(0))
		if err != nil {
			return err
		}
		last.end = r.lsn()
		n, err := r.note()
		last.lossy = s.lossy(n, last.end)
		if err == nil {
			err = l.checkEnd(r, n)
		}
		if err == nil {
			err = l.checkAnnounced(files, s.generation, n)
		}
		if err == nil {
			err = l.checkUnbegun(files, s.generation, last.end, n)
		}
		if err == nil {
			err = r.harden(max(synced, from))
		}
		return err
	})
	return last, err
}

func (l *Log) withReader(s segment, from LSN, do func(r *reader) error) error {
	file, err := l.fs.Open(fileName(l.cfg.Dir, s.generation))
	if err != nil {
		return err
	}
	return errors.Join(do(newReader(file, s, from)), file.Close())
}

// replayFrames replays up to a place, or up to the first place without a valid frame. It returns
// the highest synced LSN that the frames record.
func (l *Log) replayFrames(ctx context.Context, r *reader, to LSN) (LSN, error) {
	var synced LSN
	for r.lsn() < to {
		f, ok, err := r.next()
		if err != nil || !ok {
			return synced, err
		}
		if err := ctx.Err(); err != nil {
			return synced, err
		}
		if err := l.replayFrame(f); err != nil {
			return synced, err
		}
		synced = max(synced, f.synced)
	}
	return synced, nil
}

func (l *Log) replayFrame(f frame) error {
	if f.kind == kindMark {
		return nil
	}
	machine := l.machines[f.kind]
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
