package shardlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// touch makes the shard's folder before the first write of this process, and removes files that a
// crash left there.
func (sh *Shard) touch() error {
	if sh.touched {
		return nil
	}
	err := sh.store.cfg.FS.Mkdir(sh.folder) // the sync of the segments syncs its name
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the folder of a shard: %w", err)
	}
	if err := sh.sweep(func(uint64) error { return nil }); err != nil {
		return err
	}
	sh.touched = true
	return nil
}

// sweep removes segment files that do not belong to the shard. It calls see before each removal.
func (sh *Shard) sweep(see func(first uint64) error) error {
	sh.pub.Lock()
	ours := make(map[uint64]bool, len(sh.pub.segments))
	for _, seg := range sh.pub.segments {
		ours[seg.first] = true
	}
	sh.pub.Unlock()
	var failed error
	err := sh.store.removeSegments(sh.folder, func(first uint64) bool {
		if !ours[first] && failed == nil {
			failed = see(first)
		}
		return !ours[first] && failed == nil
	})
	return errors.Join(failed, err)
}

// removeSegments removes the segment files of a folder whose first index is unwanted. It leaves
// files with other names alone.
func (s *Store) removeSegments(folder string, unwanted func(first uint64) bool) error {
	names, err := s.cfg.FS.List(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the segments of a shard: %w", err)
	}
	for _, name := range names {
		if first, ok := parseSegmentName(name); !ok || !unwanted(first) {
			continue
		}
		err := s.cfg.FS.Remove(path.Join(folder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a segment without use: %w", err)
		}
	}
	return nil
}

// removeFolder removes a shard's folder and every segment file in it.
func (s *Store) removeFolder(folder string) {
	err := s.removeSegments(folder, func(uint64) bool { return true })
	if err == nil {
		err = s.cfg.FS.Remove(folder)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.cfg.Logger.Warn("the folder of a deleted shard cannot be removed; "+
			"the next start tries again", "folder", folder, "error", err)
	}
}
