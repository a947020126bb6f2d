package wal

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// keepSnapshots is the number of snapshots that a directory keeps.
const keepSnapshots = 2

// image is a snapshot that an inspection has read.
type image struct {
	SnapshotFile
	parts  []part // the whole ones
	damage []*CorruptError
}

// snapshots restores the machines from the snapshot that a start would use: the newest whole one,
// or none if the log reaches back to its beginning. Without such a state each machine gets the
// newest part of its own that is whole.
func (in *inspector) snapshots(files logFiles) error {
	images, err := in.images()
	if err != nil {
		return err
	}
	begun := files.begun()
	empty := len(begun) > 0 && begun[0].start == 0
	var chosen *image
	for i := range images {
		if len(images[i].damage) == 0 && (chosen == nil || in.base != BaseNewest) {
			chosen = &images[i]
		}
	}
	if empty && in.base == BaseEmpty {
		chosen = nil
	}
	for _, each := range images {
		if chosen != nil || empty {
			in.found.Spare = addDamage(in.found.Spare, each.damage)
		} else {
			in.found.Damage = addDamage(in.found.Damage, each.damage)
		}
	}
	if len(images) > 1 && chosen == &images[0] && len(images[1].damage) == 0 {
		in.second, in.older = true, images[1].LSN
	}
	switch {
	case chosen != nil:
		in.found.Snapshot = chosen.SnapshotFile
		return in.use(chosen, chosen.parts)
	case empty || len(begun) == 0 && len(images) == 0:
		return nil // the log is whole, or there is none
	}
	return in.patch(images)
}

// images reads the snapshots that a start keeps, the newest first. Older and unfinished ones are
// leftovers.
func (in *inspector) images() ([]image, error) {
	kept, err := in.folder.snapshots()
	if err != nil {
		return nil, err
	}
	if len(kept) > keepSnapshots {
		kept = kept[:keepSnapshots]
	}
	images := make([]image, 0, len(kept))
	known := map[string]bool{}
	for _, at := range kept {
		name := snapshotName(in.folder.dir, at)
		known[path.Base(name)] = true
		each, err := in.image(name, at)
		if err != nil {
			return nil, err
		}
		if len(images) > 0 && len(images[0].damage) == 0 && in.base == BaseNewest {
			each.parts = nil // only checked
		}
		images = append(images, each)
	}
	names, err := in.folder.fs.List(in.folder.dir)
	for _, name := range names {
		if isOurs(name) && !known[name] {
			in.found.Leftover = append(in.found.Leftover, path.Join(in.folder.dir, name))
		}
	}
	return images, err
}

func (in *inspector) image(name string, at LSN) (image, error) {
	each := image{SnapshotFile: SnapshotFile{Name: name, LSN: at}}
	info, err := in.folder.fs.Stat(name)
	if err != nil {
		return each, err
	}
	each.Size = info.Size()
	f, err := in.folder.fs.Open(name)
	if err != nil {
		return each, err
	}
	if err := errors.Join(each.read(f), f.Close()); err != nil {
		return each, err
	}
	return each, in.verifyFiles(&each)
}

// verifyFiles reads the files that the snapshot's parts name.
func (in *inspector) verifyFiles(each *image) error {
	for _, p := range each.parts {
		keeper, ok := in.recovery.machines[p.kind].(FileKeeper)
		if !ok {
			continue
		}
		spare, lost, err := keeper.Verify(p.data)
		if err != nil {
			return err
		}
		in.found.Spare = addDamage(in.found.Spare, spare)
		each.damage = append(each.damage, lost...)
	}
	return nil
}

// addDamage adds damage that is not listed yet: two snapshots may name one file.
func addDamage(list, more []*CorruptError) []*CorruptError {
	for _, damage := range more {
		if !slices.ContainsFunc(list, func(c *CorruptError) bool { return *c == *damage }) {
			list = append(list, damage)
		}
	}
	return list
}

// read reads every part that verifies.
func (each *image) read(f vfs.File) error {
	damaged := func(off int64, err error) error {
		if !errors.Is(err, errSnapshot) {
			return err
		}
		each.damage = append(each.damage, &CorruptError{
			File: each.Name, Offset: off, LSN: each.LSN, Reason: err.Error(),
		})
		return nil
	}
	lsn, entries, err := readIndex(f)
	if err == nil && lsn != each.LSN {
		err = fmt.Errorf("%w: it is of another place, %d", errSnapshot, lsn)
	}
	if err != nil {
		return damaged(0, err)
	}
	for _, e := range entries {
		data, err := readPart(f, e)
		if err == nil {
			each.parts = append(each.parts, part{kind: e.kind, data: data})
		} else if err = damaged(e.off, err); err != nil {
			return err
		}
	}
	return nil
}

// use restores machines from parts of a snapshot. A part that its machine refuses is damage.
func (in *inspector) use(from *image, parts []part) error {
	for _, p := range parts {
		var err error
		if machine := in.recovery.machines[p.kind]; machine == nil {
			err = fmt.Errorf("it holds a machine of kind %d, and there is none", p.kind)
		} else {
			err = machine.Restore(p.data)
		}
		in.bases[p.kind] = from.LSN
		if err != nil {
			in.silent[p.kind] = true
			err = in.damaged(&CorruptError{File: from.Name, LSN: from.LSN, Reason: err.Error()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// patch restores each machine from its newest whole part, of which there is none if all snapshots
// are missing. The frames behind the oldest of these snapshots follow.
func (in *inspector) patch(images []image) error {
	for _, kind := range slices.Sorted(maps.Keys(in.recovery.machines)) {
		found := false
		for i := range images {
			for _, p := range images[i].parts {
				if p.kind != kind || found {
					continue
				}
				found = true
				if err := in.use(&images[i], []part{p}); err != nil {
					return err
				}
				if s := images[i].SnapshotFile; in.found.Snapshot.LSN == 0 ||
					s.LSN < in.found.Snapshot.LSN {
					in.found.Snapshot = s
				}
			}
		}
		if !found {
			in.silent[kind] = true // its frames mean nothing without the snapshot
			in.found.Without = append(in.found.Without, kind)
		}
	}
	if in.found.Snapshot.Name == "" && len(images) > 0 { // nothing is whole
		in.found.Snapshot = images[0].SnapshotFile
	}
	return nil
}

// isOurs reports whether a start removes a file of this name, unless it is a snapshot that is kept.
func isOurs(name string) bool {
	_, ok := snapshotLSN(strings.TrimSuffix(name, tempSuffix))
	return ok
}
