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

// The format of a data directory is one number, in the file FORMAT. A version of the program
// reads all up to its own, and brings a directory up to it when it opens one. The ladder:
//
//	1  the first
//	2  frames of kind mark; a log file's first block tells the file's length
//	3  notes in first blocks: the newest file announces the next; where there is FORMAT, at
//	   least one log file was begun
//	4  a log file's first block tells when its frames are acknowledged, and a note whether the
//	   log ended in order; frames and snapshots of records know numbers that were skipped
//
// The number is raised at the end of a start that has succeeded, and before anything is
// written that the older version does not know. What the older version wrote stays as it is
// until it is recycled: all forms are read for ever.
//
// A new directory gets the number once its first log file was begun, so that one without any
// such file is never taken for new.
const (
	formatNew     = 0 // a directory without FORMAT
	formatNotes   = 3
	formatVersion = 4
	formatName    = "FORMAT"
	maxFormatSize = 64
)

// checkFormat reads the directory's format: formatNew if it has none yet.
func (l *Log) checkFormat() error {
	version, err := l.readFormat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.format = formatNew
		return l.checkNew()
	case err != nil:
		return err
	}
	l.format = version
	// What is seen here may be what a process left that died before its SyncDir: from now on
	// it is relied upon.
	return l.fs.SyncDir(l.cfg.Dir)
}

func (l *Log) readFormat() (int, error) {
	f, err := l.fs.Open(path.Join(l.cfg.Dir, formatName))
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

// raiseFormat brings a new or an older directory up to this version.
func (l *Log) raiseFormat() error {
	if l.format == formatVersion {
		return nil
	}
	err := l.replace(path.Join(l.cfg.Dir, formatName),
		[][]byte{[]byte(strconv.Itoa(formatVersion) + "\n")})
	if err != nil {
		return fmt.Errorf("raise the directory from format %d to %d: %w",
			l.format, formatVersion, err)
	}
	l.format = formatVersion
	return nil
}

// checkNew refuses a directory that holds a log and no FORMAT: it is not new. Log files
// without frames are what a first start leaves that was cut off.
func (l *Log) checkNew() error {
	above, err := l.fs.List(l.cfg.Dir)
	if err != nil {
		return err
	}
	for _, name := range above {
		if _, isSnapshot := snapshotLSN(name); isSnapshot {
			return l.formatGone(name)
		}
	}
	files, err := l.listFiles()
	if err != nil {
		return err
	}
	for _, f := range files {
		used, err := l.hasFrames(f)
		if err != nil {
			return err
		}
		if used {
			return l.formatGone(path.Base(fileName(l.cfg.Dir, f.generation)))
		}
	}
	return nil
}

func (l *Log) formatGone(file string) error {
	return fmt.Errorf("%w: there is %s, but the file %s is gone: "+
		"restore the directory from a copy", ErrFormat, file, formatName)
}

// hasFrames reports whether a file was begun, and frames were written to it or before it.
func (l *Log) hasFrames(f foundFile) (used bool, err error) {
	if !f.begun || f.start > 0 {
		return f.begun, nil
	}
	err = l.withReader(f.segment, 0, func(r *reader) error {
		_, used, err = r.next()
		return err
	})
	return used, err
}
