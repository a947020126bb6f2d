package shardlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
)

// dirtySet is the segments with writes that no sync has covered. Each one's file is held open
// meanwhile: an error of writing it back is reported to those who have it open.
type dirtySet struct {
	mu       sync.Mutex
	segments map[*segment]*unsynced
	writes   uint64 // so far, to any segment
}

type unsynced struct {
	file    *handle
	last    uint64 // the last write's number: a sync knows by it whether it covered that one
	newName bool   // the file's name is not synced in its folder
}

func newDirtySet() *dirtySet { return &dirtySet{segments: map[*segment]*unsynced{}} }

// wrote notes a write that is done. It takes over the caller's hold of the file, if it reports
// true; else the set has one already.
//
// The order matters: a write is noted after it is done and before the segment's new size is
// published. A checkpoint reads the sizes first and then syncs what is in the set, so it syncs
// every byte that it names; and a sync that ran beside a write does not take it for covered.
func (d *dirtySet) wrote(h *handle, newName bool) (taken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	u := d.segments[h.seg]
	if u == nil {
		u = &unsynced{file: h}
		d.segments[h.seg] = u
		taken = true
	}
	d.writes++
	u.last = d.writes
	u.newName = u.newName || newName
	return taken
}

func (d *dirtySet) len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.segments)
}

// drop takes a segment out that is about to be removed.
func (d *dirtySet) drop(f *files, seg *segment) {
	d.mu.Lock()
	u := d.segments[seg]
	delete(d.segments, seg)
	d.mu.Unlock()
	if u != nil {
		f.release(u.file)
	}
}

// close lets go of every file.
func (d *dirtySet) close(f *files) {
	d.mu.Lock()
	held := d.segments
	d.segments = map[*segment]*unsynced{}
	d.mu.Unlock()
	for _, u := range held {
		f.release(u.file)
	}
}

// syncing is a copy of an entry, with a hold of its own.
type syncing struct {
	unsynced
	seg *segment
}

func (d *dirtySet) snapshot(f *files) []syncing {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]syncing, 0, len(d.segments))
	for seg, u := range d.segments {
		f.again(u.file)
		list = append(list, syncing{*u, seg})
	}
	return list
}

// synced takes an entry out, unless it was written since the copy.
func (d *dirtySet) synced(f *files, done syncing) {
	d.mu.Lock()
	u := d.segments[done.seg]
	current := u != nil && u.file == done.file
	covered := current && u.last == done.last
	if covered {
		delete(d.segments, done.seg)
	} else if current && done.newName {
		u.newName = false
	}
	d.mu.Unlock()
	if covered {
		f.release(u.file)
	}
}

// syncSegments makes everything durable that was written to segments before the call, and
// their names. Once stop is closed it returns errStopped. Any other error fails the store for
// ever: a sync that is tried again may succeed although the data is lost.
//
// One call at a time: of two syncs of a file at once, the failure may be told to one alone.
func (s *Store) syncSegments(stop <-chan struct{}) error {
	select {
	case s.syncing <- struct{}{}:
		defer func() { <-s.syncing }()
	case <-stop:
		return errStopped
	}
	if fatal := s.fatal.Load(); fatal != nil {
		return *fatal
	}
	list := s.dirty.snapshot(s.files)
	defer func() {
		for _, each := range list {
			s.files.release(each.file)
		}
	}()
	folders := map[string]*Shard{}
	for _, each := range list {
		if stopped(stop) {
			return errStopped
		}
		if err := each.file.Sync(); err != nil {
			return s.failSync(each.seg.path(), err)
		}
		if each.newName {
			folders[each.seg.shard.folder] = each.seg.shard
		}
	}
	if err := s.syncFolders(stop, folders); err != nil {
		return err
	}
	for _, each := range list {
		s.dirty.synced(s.files, each)
	}
	return nil
}

// syncFolders syncs the folders of shards with new files, and the folder that they are in,
// where a folder may be left from a process that ended before it had synced the name.
func (s *Store) syncFolders(stop <-chan struct{}, folders map[string]*Shard) error {
	for folder, sh := range folders {
		if stopped(stop) {
			return errStopped
		}
		err := s.cfg.FS.SyncDir(folder)
		if err != nil && !(errors.Is(err, fs.ErrNotExist) && sh.deleted()) {
			return s.failSync(folder, err)
		}
	}
	if len(folders) == 0 {
		return nil
	}
	if err := s.cfg.FS.SyncDir(s.root); err != nil {
		return s.failSync(s.root, err)
	}
	return nil
}

var errStopped = errors.New("stopped")

func stopped(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

func (s *Store) failSync(name string, err error) error {
	s.fail(fmt.Errorf("%w: sync %s: %w", ErrSync, path.Clean(name), err))
	return s.Err()
}
