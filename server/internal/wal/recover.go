package wal

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// base is the state from which a start replays the log.
type base struct {
	at LSN // of the snapshot that the machines have; 0: none
	// older is the LSN of the snapshot before it, which the directory keeps too, with the log from
	// there on; 0: the log's beginning.
	older LSN
	// damage lists the newer snapshots that do not verify.
	damage []*CorruptError
}

// restore passes the newest whole snapshot to the machines. The one before it serves if the newest
// is damaged; before the first snapshot lies the empty state.
func (rec *recovery) restore() (base, error) {
	var b base
	found, err := rec.folder.snapshots()
	if err != nil {
		return b, err
	}
	for i, at := range found {
		err := rec.restoreFrom(snapshotName(rec.folder.dir, at), at)
		var corrupt *CorruptError
		if errors.As(err, &corrupt) {
			b.damage = append(b.damage, corrupt)
			continue
		}
		b.at = at
		if i+1 < len(found) {
			b.older = found[i+1]
		}
		return b, err
	}
	return b, nil
}

// explain adds the damaged snapshots to an error of replaying the log from an older one.
func (b base) explain(err error) error {
	if err == nil || len(b.damage) == 0 {
		return err
	}
	faults := make([]error, 0, 1+len(b.damage))
	for _, corrupt := range b.damage {
		faults = append(faults, corrupt)
	}
	return errors.Join(append(faults, err)...)
}

func (rec *recovery) restoreFrom(name string, at LSN) error {
	parts, err := rec.folder.readSnapshot(name, at)
	if err != nil {
		return err
	}
	// A machine with files may find them damaged. Then an older snapshot takes the place of this
	// one, and the others must not be restored yet: they can be only once.
	slices.SortStableFunc(parts, func(a, b part) int {
		_, first := rec.machines[a.kind].(FileKeeper)
		_, second := rec.machines[b.kind].(FileKeeper)
		switch {
		case first == second:
			return 0
		case first:
			return -1
		}
		return 1
	})
	for _, p := range parts {
		machine := rec.machines[p.kind]
		if machine == nil {
			return fmt.Errorf("the snapshot holds a machine of kind %d, and there is none", p.kind)
		}
		if err := machine.Restore(p.data); err != nil {
			return fmt.Errorf("restore machine %d: %w", p.kind, err)
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
			err = rec.folder.checkReaches(r, n, from)
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
