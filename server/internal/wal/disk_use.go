package wal

import (
	"errors"
	"io/fs"
	"path"
)

// DiskUse is the space that a log occupies, in bytes.
type DiskUse struct {
	// Log is the size of the log's files: those since the older one of the two kept snapshots (a
	// snapshot follows every Config.FileSize bytes), the file prepared in advance, and two spares.
	// SequencePaced bounds it while checkpoints take long.
	Log int64
	// Snapshots is the size of the two newest snapshots, and briefly that of a third one.
	Snapshots int64
}

// DiskUse returns the log's current size, as the file system reports it.
func (l *Log) DiskUse() (DiskUse, error) { return l.folder.use() }

func (d *folder) use() (DiskUse, error) {
	var use DiskUse
	for _, dir := range []string{d.dir, path.Join(d.dir, walDir)} {
		names, err := d.fs.List(dir)
		if err != nil {
			return DiskUse{}, err
		}
		for _, name := range names {
			_, isLog := generationOf(name)
			if !isLog && !isOurs(name) {
				continue
			}
			info, err := d.fs.Stat(path.Join(dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // renamed or removed concurrently
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

// Pending returns the number of bytes that are not yet durable or are held, and the most that there
// may be: Config.MaxPending.
func (l *Log) Pending() (bytes, most int64) {
	l.room.mu.Lock()
	defer l.room.mu.Unlock()
	return l.room.mu.used, l.room.max
}
