package wal

import (
	"errors"
	"io/fs"
	"path"
)

// DiskUse returns what the log's files and snapshots take, in bytes, from the file system. The
// log's files are bounded: those since the newest snapshot, which is made for every
// Config.FileSize that is logged, the one made ahead, and two to be used again.
func (l *Log) DiskUse() (int64, error) {
	total := int64(0)
	for _, dir := range []string{l.cfg.Dir, path.Join(l.cfg.Dir, walDir)} {
		names, err := l.fs.List(dir)
		if err != nil {
			return 0, err
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
				return 0, err
			}
			total += info.Size()
		}
	}
	return total, nil
}
