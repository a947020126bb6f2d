package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// The format of a data directory is one number, in the file FORMAT. A program reads all versions
// up to its own, and upgrades a directory when it opens one. The ladder:
//
//	1  the first
//	2  frames of kind mark; a log file's first block holds the file's length
//	3  notes in first blocks: the newest file announces the next; if FORMAT exists, at
//	   least one log file was begun
//	4  a log file's first block says when its frames are acknowledged, and a note whether the
//	   log ended in order; frames and snapshots of records know numbers that were skipped
//	5  snapshots of records know records that a repair found lost
//	6  snapshots of items name data files, which hold most items
//	7  a data file's stripes and the copies of its index share no sector
//
// A successful start raises the number at its end, before the first write in a form that the
// older version does not know. Files of the older version stay as they are until they are
// recycled: a program reads all forms for ever.
//
// A new directory gets the number only after its first log file was begun. So a directory that
// has lost all its log files never looks new.
// such file is never taken for new.
const (
	formatNew     = 0 // a directory without FORMAT
	formatNotes   = 3
	formatVersion = 7
	formatName    = "FORMAT"
	maxFormatSize = 64
)

// checkFormat reads the directory's format: formatNew if it has none yet.
func (d *folder) checkFormat() error {
	version, err := d.readFormat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.format = formatNew
		return d.checkNew()
	case err != nil:
		return err
	}
	d.format = version
	// The process that wrote FORMAT may have died before its SyncDir. Make the file durable
	// before relying on it.
	return d.fs.SyncDir(d.dir)
}

func (d *folder) readFormat() (int, error) {
	f, err := d.fs.Open(path.Join(d.dir, formatName))
	if err != nil {
		return 0, err
	}
	p := make([]byte, maxFormatSize)
	n, err := f.ReadAt(p, 0)
	version := 0
	if err == nil || errors.Is(err, io.EOF) {
		version, err = parseFormat(string(p[:n]))
	}
	return version, errors.Join(err, f.Close())
}

func parseFormat(text string) (int, error) {
	version, err := strconv.ParseUint(strings.TrimSuffix(text, "\n"), 10, 31)
	switch {
	case err != nil || version == 0:
		return 0, fmt.Errorf("%w: the file %s does not hold a number: "+
			"this is no data directory, or a damaged one", ErrFormat, formatName)
	case version > formatVersion:
		return 0, fmt.Errorf("%w: it has version %d, and this runnel reads up to %d: "+
			"use a newer runnel", ErrNewerFormat, version, formatVersion)
	}
	return int(version), nil
}

// raiseFormat upgrades a new or an older directory to this version.
func (d *folder) raiseFormat() error {
	if d.format == formatVersion {
		return nil
	}
	err := d.replace(path.Join(d.dir, formatName),
		[][]byte{[]byte(strconv.Itoa(formatVersion) + "\n")})
	if err != nil {
		return fmt.Errorf("raise the directory from format %d to %d: %w",
			d.format, formatVersion, err)
	}
	d.format = formatVersion
	return nil
}

// checkNew refuses a directory that holds a log but no FORMAT: such a directory is not new. Log
// files without frames are allowed, since an interrupted first start leaves them.
func (d *folder) checkNew() error {
	above, err := d.fs.List(d.dir)
	if err != nil {
		return err
	}
	for _, name := range above {
		if _, isSnapshot := snapshotLSN(name); isSnapshot {
			return formatGone(name)
		}
	}
	files, err := d.listFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		used, err := d.hasFrames(f)
		if err != nil {
			return err
		}
		if used {
			return formatGone(path.Base(fileName(d.dir, f.generation)))
		}
	}
	return nil
}

func formatGone(file string) error {
	return fmt.Errorf("%w: there is %s, but the file %s is gone: "+
		"restore the directory from a copy", ErrFormat, file, formatName)
}

// hasFrames reports whether a file was begun and the log has frames in it or before it.
func (d *folder) hasFrames(f foundFile) (used bool, err error) {
	if !f.begun || f.start > 0 {
		return f.begun, nil
	}
	err = d.withReader(f.segment, 0, func(r *reader) error {
		_, used, err = r.next()
		return err
	})
	return used, err
}
