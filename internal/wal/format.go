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
const (
	formatVersion = 1
	formatName    = "FORMAT"
	maxFormatSize = 64
)

// checkFormat reads the directory's format, and writes it into a new directory.
func (l *Log) checkFormat() error {
	name := path.Join(l.cfg.Dir, formatName)
	f, err := l.fs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return l.writeFormat(name)
	}
	if err != nil {
		return err
	}
	p := make([]byte, maxFormatSize)
	n, err := f.ReadAt(p, 0)
	if err == nil || errors.Is(err, io.EOF) {
		err = parseFormat(string(p[:n]))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	// What is seen here may be what a process left that died before its SyncDir: from now on
	// it is relied upon.
	return l.fs.SyncDir(l.cfg.Dir)
}

func parseFormat(text string) error {
	version, err := strconv.ParseUint(strings.TrimSuffix(text, "\n"), 10, 32)
	switch {
	case err != nil || version == 0:
		return fmt.Errorf("%w: the file %s does not hold a number: "+
			"this is no data directory, or a damaged one", ErrFormat, formatName)
	case version > formatVersion:
		return fmt.Errorf("%w: it has version %d, and this runnel reads up to %d: "+
			"use a newer runnel", ErrFormat, version, formatVersion)
	}
	return nil
}

// writeFormat marks a new directory. One that holds a log and no FORMAT is not new.
func (l *Log) writeFormat(name string) error {
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
	return l.replace(name, [][]byte{[]byte(strconv.Itoa(formatVersion) + "\n")})
}
