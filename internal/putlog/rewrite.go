package putlog

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// openBytes is the size of the open units' frames in the file.
func (j *Journal) openBytes() (n int64) {
	for _, unit := range j.mu.open {
		n += int64(unit.length)
	}
	return n
}

// rewrite writes the current state into a new file, syncs it, and renames it to the journal's name.
// A crash leaves either the old file or the new one.
func (j *Journal) rewrite() error {
	name := j.name + ".new"
	file, err := j.fs.Create(name)
	if err != nil {
		return err
	}
	moved, size, err := j.writeAll(file)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = j.fs.Rename(name, j.name)
	}
	if err == nil {
		err = j.fs.SyncDir(j.dir())
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	old := j.mu.file
	j.mu.file, j.mu.open = file, moved
	j.mu.size, j.mu.synced = size, size
	j.mu.pending = j.mu.pending[:0]
	if old != nil {
		return old.Close()
	}
	return nil
}

// writeAll writes the header, the marks, the input's read position, the refused records and the
// open units.
func (j *Journal) writeAll(file vfs.File) (moved map[unitID]open, size int64, err error) {
	frames := appendHeader(nil, j.mu.identity)
	frames = appendCovered(frames, j.mu.marks)
	frames = appendRead(frames, j.mu.read, j.mu.sum, 0)
	frames = j.mu.appendAllRefused(frames)
	write := func(b []byte) error {
		_, err := file.WriteAt(b, size)
		size += int64(len(b))
		return err
	}
	if err := write(frames); err != nil {
		return nil, 0, err
	}
	moved = make(map[unitID]open, len(j.mu.open))
	ids := slices.SortedFunc(maps.Keys(j.mu.open), func(a, b unitID) int {
		return cmp.Compare(j.mu.open[a].offset, j.mu.open[b].offset)
	})
	for _, id := range ids {
		unit := j.mu.open[id]
		frame := make([]byte, unit.length)
		if _, err := j.mu.file.ReadAt(frame, unit.offset); err != nil {
			return nil, 0, err
		}
		unit.offset = size
		moved[id] = unit
		if err := write(frame); err != nil {
			return nil, 0, err
		}
	}
	return moved, size, nil
}
