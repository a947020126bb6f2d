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
//
// The number is raised at the end of a start that has succeeded, and before anything is
// written that the older version does not know. What the older version wrote stays as it is
// until it is recycled: both forms are read for ever.
const (
	formatVersion = 2
	formatName    = "FORMAT"
	maxFormatSize = 64
)

// checkFormat reads the directory's format, and writes it into a new directory.
func (l *Log) checkFormat() error {
	version, err := l.readFormat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := l.checkNew(); err != nil {
			return err
		}
		l.format = formatVersion
		return l.writeFormat()
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

// raiseFormat brings an older directory up to this version.
func (l *Log) raiseFormat() error {
	if l.format == formatVersion {
		return nil
	}
	if err := l.writeFormat(); err != nil {
		return fmt.Errorf("raise the directory from format %d to %d: %w",
			l.format, formatVersion, err)
	}
	l.format = formatVersion
	return nil
}

func (l *Log) writeFormat() error {
	return l.replace(path.Join(l.cfg.Dir, formatName),
		[][]byte{[]byte(strconv.Itoa(formatVersion) + "\n")})
}

// checkNew refuses a directory that holds a log and no FORMAT: it is not new.
func (l *Log) checkNew() error {
	files, err := l.fs.List(path.Join(l.cfg.Dir, walDir))
	if err != nil {
		return err
	}
	above, err := l.fs.List(l.cfg.Dir)
	if err != nil {
		return err
	}
	for _, file := range append(files, above...) {
		_, isLog := generationOf(file)
		_, isSnapshot := snapshotLSN(file)
		if isLog || isSnapshot {
			return fmt.Errorf("%w: there is %s, but the file %s is gone: "+
				"restore the directory from a copy", ErrFormat, file, formatName)
		}
	}
	return nil
}
