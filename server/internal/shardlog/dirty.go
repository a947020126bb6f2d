package shardlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// dirtySet holds the segments with unsynced writes. It keeps their files open: the operating
// system reports a failed write-back only to holders of an open file.
type dirtySet struct {
	mu       sync.Mutex
	segments map[*segment]*unsynced
	writes   uint64 // so far, to any segment
}

type unsynced struct {
	file    *handle
	last    uint64 // the last write's number: shows a sync whether it covered that write
	newName bool   // the file's name is not synced in its folder
}

func newDirtySet() *dirtySet { return &dirtySet{segments: map[*segment]*unsynced{}} }

// wrote records a completed write. If it returns true it has taken over the caller's hold of the
// file; otherwise the set already has one.
//
// The order matters: call wrote after the write and before the segment's new size is published. A
// checkpoint reads the sizes first and then syncs the set, so it syncs every byte that it names.
// A write that runs during a sync counts as not covered.
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

// drop removes a segment that is about to be deleted.
func (d *dirtySet) drop(f *files, seg *segment) {
	d.mu.Lock()
	u := d.segments[seg]
	delete(d.segments, seg)
	d.mu.Unlock()
	if u != nil {
		f.release(u.file)
	}
}

// close releases every file.
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

// synced removes an entry unless it was written since the copy.
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

// syncSegments makes all earlier writes to segments durable, and the files' names. Once stop is
// closed it returns errStopped. Any other error fails the store for ever: a repeated sync may
// succeed although the data is lost.
//
// Allow one call at a time: of two concurrent syncs of a file, only one may get the failure.
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
	open := make([]vfs.File, len(list))
	for i, each := range list {
		open[i] = each.file.File
	}
	n, names, err := vfs.SyncFiles(open, stop)
	if err != nil {
		return s.failSync(list[n].seg.path(), err)
	}
	if n < len(list) {
		return errStopped
	}
	if !names {
		if err := s.syncFolders(stop, list); err != nil {
			return err
		}
	}
	for _, each := range list {
		s.dirty.synced(s.files, each)
	}
	return nil
}

// syncFolders syncs the folders of shards with new files, and their parent folder. A process that
// ended earlier may have made a folder without syncing its name.
func (s *Store) syncFolders(stop <-chan struct{}, list []syncing) error {
	folders := map[string]*Shard{}
	for _, each := range list {
		if each.newName {
			folders[each.seg.shard.folder] = each.seg.shard
		}
	}
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
