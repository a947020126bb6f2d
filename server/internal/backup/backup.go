package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/fsck"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
	"github.com/runnel-stream/runnel/server/internal/serverclock"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

const (
	maxPasses = 5        // over the segments, before the hold
	fewBytes  = 64 << 20 // in a pass: it is time for the hold
	attempts  = 5        // at the log
	holdRetry = 50 * time.Millisecond
	holdWait  = 10 * time.Minute // for a checkpoint, which may write a large snapshot
)

// ErrBusy reports that the server made a checkpoint during every attempt to copy the log.
var ErrBusy = errors.New("the server writes faster than the log can be copied: " +
	"try again when it writes less, or copy to a faster disk")

// Target takes the files of a copy. A file that is put again replaces the earlier one.
type Target interface {
	Put(name string, mode fs.FileMode, size int64, r io.Reader) error
}

// Report is the result of a backup.
type Report struct {
	Dir   string `json:"dir"`
	To    string `json:"to"`
	Files int    `json:"files"` // in the copy
	Bytes int64  `json:"bytes"` // of them
	// Position is the place in the log at which the copy ends.
	Position uint64 `json:"position"`
	// Attempts at the log: each but the last was crossed by a checkpoint.
	Attempts int `json:"attempts"`
	// Checked says that the copy was checked as fsck does. A packed copy is not, unless no server
	// used the directory: then that was checked.
	Checked bool `json:"checked"`
	// Damage is that of the directory and of the copy. The copy is complete otherwise.
	Damage []fsck.Damage `json:"damage"`
}

// Run copies the data directory dir into a target. Errors: wal.ErrNoLog, wal.ErrNewerFormat,
// vfs.ErrLocked if another backup runs, ErrBusy, ctx's, the target's, and those of reading.
func Run(ctx context.Context, fsys vfs.FS, dir string, to Target) (*Report, error) {
	b := &backup{
		fs: vfs.ReadOnly(fsys), dir: dir, to: to, done: map[string]int64{},
		report: &Report{Dir: dir},
	}
	if err := wal.CheckFormat(b.fs, dir); err != nil {
		return nil, err
	}
	// No server starts meanwhile: a start cuts segments back. A running server has the lock.
	lock, err := b.fs.Lock(path.Join(dir, "LOCK"))
	if err != nil && !errors.Is(err, vfs.ErrLocked) {
		return nil, err
	}
	if err == nil {
		defer lock.Close() //nolint:errcheck // only held
	}
	for range maxPasses {
		n, err := b.data(ctx)
		if err != nil {
			return nil, err
		}
		if n < fewBytes {
			break
		}
	}
	hold, err := b.hold(ctx, fsys)
	if err != nil {
		return nil, err
	}
	err = errors.Join(b.log(ctx), hold.Close())
	for _, size := range b.done {
		b.report.Files++
		b.report.Bytes += size
	}
	return b.report, err
}

// backup is one run.
type backup struct {
	fs     vfs.FS
	dir    string
	to     Target
	done   map[string]int64 // the sizes of the copied files
	report *Report
}

// hold waits until the server has no checkpoint under way, and prevents the next one. A directory
// on a disk that cannot be written needs no hold.
func (b *backup) hold(ctx context.Context, fsys vfs.FS) (io.Closer, error) {
	ctx, cancel := context.WithTimeout(ctx, holdWait)
	defer cancel()
	retry := time.NewTicker(holdRetry)
	defer retry.Stop()
	for {
		lock, err := wal.Hold(fsys, b.dir)
		switch {
		case err == nil:
			return &held{lock, fsys, path.Join(b.dir, wal.HoldFolder)}, nil
		case errors.Is(err, fs.ErrPermission), errors.Is(err, errReadOnlyDisk):
			return io.NopCloser(nil), nil
		case !errors.Is(err, vfs.ErrLocked):
			return nil, err
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("another backup runs, or a checkpoint does not end: %w",
				errors.Join(vfs.ErrLocked, ctx.Err()))
		}
	}
}

// held is a hold. Its end leaves nothing behind.
type held struct {
	vfs.Lock
	fs     vfs.FS
	folder string
}

// Close removes the folder while it is locked, so that it is not another backup's.
func (h *held) Close() error {
	return errors.Join(h.fs.Remove(path.Join(h.folder, "LOCK")), h.fs.Remove(h.folder),
		h.Lock.Close())
}

// log makes the last pass and copies the log, and again if a checkpoint came between.
func (b *backup) log(ctx context.Context) error {
	for range attempts {
		b.report.Attempts++
		before, err := wal.NewestSnapshot(b.fs, b.dir)
		if err != nil {
			return err
		}
		if _, err := b.data(ctx); err != nil {
			return err
		}
		done, err := wal.Copy(b.fs, b.dir, func(name string, size int64, r io.Reader) error {
			return b.put(name, 0o644, size, r)
		})
		// A newer snapshot may name bytes that the segments did not have when they were copied.
		if errors.Is(err, wal.ErrMoved) || err == nil && done.Snapshot != before {
			continue
		}
		if err != nil {
			return err
		}
		b.report.Position = uint64(done.End)
		if corrupt := (*wal.CorruptError)(nil); errors.As(done.Damage, &corrupt) {
			b.report.Damage = append(b.report.Damage, fsck.Damage{
				File: corrupt.File, Offset: corrupt.Offset, What: corrupt.Reason,
				Lost: "nothing: the copy has the snapshot before, and the log from there on",
			})
		}
		return b.others(ctx)
	}
	return ErrBusy
}

// data copies the segments and the items' files that the pass before has not copied, and returns
// their bytes.
func (b *backup) data(ctx context.Context) (copied int64, err error) {
	copied, err = b.segments(ctx)
	if err != nil {
		return copied, err
	}
	names, err := b.list(itemstore.FolderName)
	for _, name := range names {
		if !itemstore.IsDataFile(name) {
			continue
		}
		if ctx.Err() != nil {
			return copied, ctx.Err()
		}
		n, err := b.file(path.Join(itemstore.FolderName, name))
		copied += n
		if err != nil {
			return copied, err
		}
	}
	return copied, err
}

// segments copies the segments that have grown since the pass before, and returns their bytes.
func (b *backup) segments(ctx context.Context) (copied int64, err error) {
	shards, err := b.list("shards")
	if err != nil {
		return 0, err
	}
	for _, shard := range shards {
		folder := path.Join("shards", shard)
		names, err := b.list(folder)
		if err != nil {
			return copied, err
		}
		for _, name := range names {
			if !strings.HasSuffix(name, ".seg") {
				continue
			}
			if ctx.Err() != nil {
				return copied, ctx.Err()
			}
			n, err := b.file(path.Join(folder, name))
			copied += n
			if err != nil {
				return copied, err
			}
		}
	}
	return copied, nil
}

// list returns the names in a folder of the directory; none if it is not there.
func (b *backup) list(folder string) ([]string, error) {
	names, err := b.fs.List(path.Join(b.dir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// file copies a file as long as it is now, unless a copy of that length was made. It returns the
// bytes. A file that is gone is passed over.
func (b *backup) file(name string) (int64, error) {
	full := path.Join(b.dir, name)
	info, err := b.fs.Stat(full)
	var file vfs.File
	if err == nil && (info.IsDir() || b.done[name] == info.Size()) {
		return 0, nil
	}
	if err == nil {
		file, err = b.fs.Open(full)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	err = b.put(name, info.Mode().Perm(), info.Size(), io.NewSectionReader(file, 0, info.Size()))
	return info.Size(), errors.Join(err, file.Close())
}

// others copies the server's clock and certificates. The clock is later than the log, so it is not
// behind the records.
func (b *backup) others(ctx context.Context) error {
	names, err := b.list("tls")
	if err != nil {
		return err
	}
	files := []string{serverclock.FileName}
	for _, name := range names {
		files = append(files, path.Join("tls", name))
	}
	for _, name := range files {
		if _, err := b.file(name); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (b *backup) put(name string, mode fs.FileMode, size int64, r io.Reader) error {
	err := b.to.Put(name, mode, size, r)
	if errors.Is(err, io.ErrUnexpectedEOF) { // a start cuts segments back
		err = fmt.Errorf("the file became shorter meanwhile, as when the server is started again: "+
			"run the command again: %w", err)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	b.done[name] = size
	return nil
}
