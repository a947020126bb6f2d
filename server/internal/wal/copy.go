package wal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// ErrMoved reports that the log made a checkpoint while it was copied, and so may have reused
// files. Copy again.
var ErrMoved = errors.New("the log has moved on meanwhile")

// copyAhead is the distance of the generations of a copy from those of the original. The original
// goes on, and its later lives have numbers that the lives of the copy must not have: see Life.
const copyAhead = 1 << 16

// Copied describes a copy of a log.
type Copied struct {
	Snapshot string // base name of the newest snapshot; "" if there is none
	End      LSN    // of the copy: all frames before it are in it
	// Damage is that of the newest snapshot; nil if it is whole. The copy then has the one before
	// it, and the log from there on.
	Damage error
}

// Copy reads the log of a directory that a server may be using, and calls put for each file of a
// copy, with its name below dir and its content. The copy holds the newest whole snapshot and every
// frame behind it that was durable when Copy was called. Copy changes nothing. It returns ErrMoved
// if a checkpoint came between: Hold prevents that.
//
// A copied file ends with its last valid frame; what the committer writes meanwhile would otherwise
// look like damage. The copy counts as one of a life that may have lost frames, since the original
// went on: a start skips sequence numbers, which clients may have seen.
func Copy(fsys vfs.FS, dir string, put func(name string, size int64, r io.Reader) error,
) (Copied, error) {
	c := &copier{folder: folder{fs: vfs.ReadOnly(fsys), dir: dir}, put: put}
	done, err := c.copy()
	if errors.Is(err, ErrNoLog) || errors.Is(err, ErrFormat) {
		return done, err
	}
	// A checkpoint may explain every other failure. A start renames no file that is needed, but
	// others may lose their names while they are listed.
	name, failed := c.snapshot()
	if failed == nil && (name != done.Snapshot || errors.Is(err, fs.ErrNotExist)) {
		return done, errors.Join(ErrMoved, err)
	}
	return done, errors.Join(err, failed)
}

// NewestSnapshot returns the base name of a directory's newest snapshot; "" if there is none.
func NewestSnapshot(fsys vfs.FS, dir string) (string, error) {
	c := &copier{folder: folder{fs: fsys, dir: dir}}
	return c.snapshot()
}

type copier struct {
	folder folder
	put    func(name string, size int64, r io.Reader) error
	at     LSN // of the snapshot
}

// snapshot returns the newest snapshot.
func (c *copier) snapshot() (name string, err error) {
	names, err := c.folder.fs.List(c.folder.dir)
	for _, each := range names {
		if IsSnapshot(each) {
			name = each
		}
	}
	return name, err
}

// CheckFormat returns nil if this program can read the directory. Errors: ErrNoLog, ErrFormat,
// ErrNewerFormat, and the file system's.
func CheckFormat(fsys vfs.FS, dir string) error {
	info, err := fsys.Stat(dir)
	if err != nil {
		return err
	}
	d := folder{fs: fsys, dir: dir}
	if _, err = d.readFormat(); !info.IsDir() || errors.Is(err, fs.ErrNotExist) {
		return ErrNoLog
	}
	return err
}

func (c *copier) copy() (done Copied, err error) {
	if done.Snapshot, err = c.snapshot(); err != nil {
		return done, err
	}
	whole := ""
	if whole, done.Damage, err = c.whole(); err != nil {
		return done, err
	}
	for _, name := range []string{formatName, whole} {
		if name == "" {
			continue
		}
		if err := c.file(name); err != nil {
			return done, err
		}
	}
	files, err := c.folder.listFiles()
	if err != nil {
		return done, err
	}
	done.End, err = c.log(files)
	if err == nil && done.End < c.at {
		err = c.folder.gone(c.at)
	}
	if err != nil {
		return done, errors.Join(done.Damage, err)
	}
	ahead := path.Base(fileName("", files.highest()+copyAhead))
	return done, c.put(path.Join(walDir, ahead), 0, bytes.NewReader(nil))
}

// whole chooses the newest snapshot that is whole; "" if there is none. The copy then needs the log
// from its beginning.
func (c *copier) whole() (name string, damage, err error) {
	all, err := c.folder.snapshots()
	if err != nil {
		return "", nil, err
	}
	for _, at := range all {
		full := snapshotName(c.folder.dir, at)
		_, err := c.folder.readSnapshot(full, at)
		if err == nil {
			c.at = at
			return path.Base(full), damage, nil
		}
		if corrupt := (*CorruptError)(nil); !errors.As(err, &corrupt) {
			return "", nil, err
		}
		damage = cmp.Or(damage, err)
	}
	return "", damage, nil
}

// file copies a file that does not change.
func (c *copier) file(name string) error {
	file, err := c.folder.fs.Open(path.Join(c.folder.dir, name))
	if err != nil {
		return err
	}
	size, err := file.Size()
	if err == nil {
		err = c.put(name, size, io.NewSectionReader(file, 0, size))
	}
	return errors.Join(err, file.Close())
}

// log copies the needed log files and returns the place where the copy ends.
func (c *copier) log(files logFiles) (end LSN, err error) {
	begun := files.begun()
	first := firstNeeded(begun, c.at)
	if first < 0 {
		return 0, c.folder.gone(c.at)
	}
	for i, s := range begun[first:] {
		last := first+i+1 == len(begun)
		if end, err = c.segment(s, last); err != nil {
			return 0, err
		}
		if !last && end != begun[first+i+1].start {
			return 0, &CorruptError{
				File: fileName(c.folder.dir, s.generation), LSN: end,
				Reason: "no frame verifies here, and the next file goes on later",
			}
		}
	}
	return end, nil
}

// segment copies a log file up to its last valid frame.
func (c *copier) segment(s segment, last bool) (end LSN, err error) {
	name := path.Join(walDir, path.Base(fileName("", s.generation)))
	err = c.folder.withReader(s, s.start, func(r *reader) error {
		if err := c.read(r); err != nil {
			return err
		}
		end = r.lsn()
		size := max(minFileSize, r.off)
		s.size = size
		if s.made != 0 {
			s.made = size
		}
		if last && s.acks == acksSynced {
			s.acks = acksEarly
		}
		frames := io.NewSectionReader(r.file, blockSize, r.off-blockSize)
		rest := bytes.NewReader(make([]byte, size-r.off))
		content := io.MultiReader(bytes.NewReader(encodeBlock(s)), frames, rest)
		if err := c.put(name, size, content); err != nil {
			return fmt.Errorf("copy the log file %d: %w", s.generation, err)
		}
		return nil
	})
	return end, err
}

// read reads to the last valid frame. The committer may write meanwhile: a place that does not
// verify, with a later frame behind it that was synced after it, verifies when it is read again. If
// it does not, it has rotted.
func (c *copier) read(r *reader) error {
	for {
		_, ok, err := r.next()
		if err != nil {
			return err
		}
		if ok {
			continue
		}
		proof, err := r.provesMore(r.off+frameAlign, r.lsn())
		if err != nil || proof == 0 {
			return err
		}
		r.win = nil
		if _, ok, err = r.next(); err != nil {
			return err
		}
		if !ok {
			return c.folder.corrupt(r, r.off, fmt.Sprintf(
				"no frame verifies here, and byte %d shows that there was one", proof))
		}
	}
}

// HoldFolder is the folder in a data directory whose lock a backup holds while it copies the log:
// see Hold.
const HoldFolder = "backup"

// holdFiles is how many log files may be written while a backup postpones the checkpoint.
const holdFiles = 16

// Hold asks the server that uses the directory to make no checkpoint until the lock is closed. The
// server agrees for as long as that costs at most holdFiles log files and the disk has room for
// them. ErrLocked: the server is making a checkpoint, or another backup runs, or it ends.
func Hold(fsys vfs.FS, dir string) (vfs.Lock, error) {
	folder := path.Join(dir, HoldFolder)
	if err := fsys.MkdirAll(folder); err != nil {
		return nil, err
	}
	lock, err := fsys.Lock(path.Join(folder, "LOCK"))
	if errors.Is(err, fs.ErrNotExist) { // the other backup has removed the folder
		err = errors.Join(vfs.ErrLocked, err)
	}
	return lock, err
}

// checkpointLock is what a checkpoint holds against backups.
func (d *folder) checkpointLock() (vfs.Lock, error) {
	name := path.Join(d.dir, HoldFolder)
	if _, err := d.fs.Stat(name); err != nil {
		return nil, err
	}
	return d.fs.Lock(path.Join(name, "LOCK"))
}

// checkpointUnlessHeld makes a checkpoint by snap unless a backup has asked for a pause. Without a
// backup's folder, and on every other failure, it makes the checkpoint: a backup notices that.
func checkpointUnlessHeld(l *Log, snap func() error) error {
	lock, err := l.folder.checkpointLock()
	if errors.Is(err, vfs.ErrLocked) {
		l.mu.Lock()
		wait := int64(l.mu.queue.end-l.mu.snapshot) < holdFiles*l.cfg.FileSize &&
			l.refusal() == nil
		l.mu.Unlock()
		if wait {
			return errHeld
		}
	}
	if err != nil {
		return snap()
	}
	return errors.Join(snap(), lock.Close())
}

var errHeld = errors.New("a backup copies the log")
