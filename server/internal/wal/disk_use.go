package wal

import (
	"errors"
	"io/fs"
	"path"
)

// DiskUse is what a log takes, in bytes.
type DiskUse struct {
	// Log is the log's files. They are bounded: those since the newest snapshot, which is made
	// for every Config.FileSize that is logged, the one made ahead, and two to be used again.
	Log int64
	// Snapshots is the newest snapshot, and for moments another one.
	Snapshots int64
}

// DiskUse returns what the log takes now, from the file system.
func (l *Log) DiskUse() (DiskUse, error) {
	var use DiskUse
	for _, dir := range []string{l.cfg.Dir, path.Join(l.cfg.Dir, walDir)} {
		names, err := l.fs.List(dir)
		if err != nil {
			return DiskUse{}, err
		}
		for _, name := range names {
			_, isLog := generationOf(name)
			if !isLog && !isOurs(name) {
				continue
			}
			info, err := l.fs.Stat(path.Join(dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // renamed or removed meanwhile
			}
			if err != nil {
				return DiskUse{}, err
			}
			if isLog {
				use.Log += info.Size()
			} else {
				use.Snapshots += info.Size()
			}
		}
	}
	return use, nil
}

// Pending returns how many bytes are not yet durable, or held: see Config.MaxPending.
func (l *Log) Pending() int64 {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	return l.room.mu.used
}
