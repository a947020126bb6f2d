package wal

import (
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// copyTo copies a log into an empty file system. before, if not nil, is called before each file.
func copyTo(t *testing.T, fs vfs.FS, before func(name string)) (*vfs.Mem, Copied, error) {
	t.Helper()
	to := vfs.NewMem()
	done, err := copyOnto(t, fs, to, before)
	return to, done, err
}

func copyOnto(t *testing.T, fs vfs.FS, to *vfs.Mem, before func(name string)) (Copied, error) {
	t.Helper()
	if err := to.MkdirAll("data/wal"); err != nil {
		t.Fatal(err)
	}
	return Copy(fs, "data", func(name string, size int64, r io.Reader) error {
		if before != nil {
			before(name)
		}
		content, err := io.ReadAll(r)
		if err == nil && int64(len(content)) != size {
			t.Errorf("%s has %d bytes, want %d", name, len(content), size)
		}
		if err == nil {
			write(t, to, path.Join("data", name), string(content))
		}
		return err
	})
}

// A backup that a checkpoint crossed copies the log once more. The copy then has the snapshot and the
// files of the earlier attempt, too, and files between may be missing: that is no damage.
func TestACopyOverAnEarlierAttempt(t *testing.T) {
	for _, more := range []uint64{3, 20, 60} {
		disk, copied := vfs.NewMem(), vfs.NewMem()
		b := start(t, config(disk))
		b.journal.before(noCheckpoint)
		for _, frames := range []uint64{20, more} {
			b.commit(t, 1000, upTo(frames)...)
			b.journal.before(nil)
			if err := b.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.journal.before(noCheckpoint)
			b.commit(t, 1000, upTo(3)...)
			if _, err := copyOnto(t, disk, copied, nil); err != nil {
				t.Fatal(err)
			}
		}
		b.journal.before(nil)
		b.stop(t)
		if found := inspect(t, copied); len(found.Damage)+len(found.Spare) > 0 {
			t.Errorf("with %d frames between: %v, %v", more, found.Damage, found.Spare)
		}
	}
}

// TestACopyOfARunningLog has all frames, and counts as a life that may have lost some: its numbers
// do not meet those of the original.
func TestACopyOfARunningLog(t *testing.T) {
	for name, checkpoint := range map[string]bool{"without a snapshot": false, "with one": true} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			b := start(t, config(disk))
			b.commit(t, 1000, upTo(10)...)
			if checkpoint {
				if err := b.Checkpoint(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			b.journal.before(noCheckpoint)
			b.commit(t, 1000, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
			copied, done, err := copyTo(t, disk, nil)
			if err != nil || done.End < b.Durable() || (done.Snapshot != "") != checkpoint {
				t.Fatalf("%+v, %v", done, err)
			}
			b.journal.before(nil)
			b.stop(t)
			b = start(t, config(copied))
			b.want(t, upTo(20)...)
			if life, lossy := b.Life(); !lossy || life < copyAhead {
				t.Errorf("life %d, lossy: %v", life, lossy)
			}
			b.commit(t, 1000, 20)
			b.stop(t)
		})
	}
}

// TestACopyCrossedByACheckpoint is refused, whenever the checkpoint comes.
func TestACopyCrossedByACheckpoint(t *testing.T) {
	for _, at := range []string{"FORMAT", "snapshot", "wal/"} {
		disk := vfs.NewMem()
		b := start(t, config(disk))
		b.commit(t, 1000, upTo(10)...)
		if err := b.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.commit(t, 1000, 10)
		once := false
		_, _, err := copyTo(t, disk, func(name string) {
			if strings.HasPrefix(name, at) && !once {
				once = true
				b.commit(t, 1000, 11)
				if err := b.Checkpoint(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		if !errors.Is(err, ErrMoved) {
			t.Errorf("a checkpoint before %s: %v", at, err)
		}
		b.stop(t)
	}
}

// TestACopyBesideTheCommitter: a frame that is written while the file is read may look like damage
// in front of a later frame. It is read again.
func TestACopyBesideTheCommitter(t *testing.T) {
	disk := vfs.NewMem()
	b := start(t, config(disk))
	b.commit(t, 1000, upTo(8)...)
	beside := &lateFrame{FS: disk, off: blockSize + 5*int64(frameSize(1000))}
	copied, _, err := copyTo(t, beside, nil)
	if err != nil || !beside.read {
		t.Fatalf("%v, the frame was late: %v", err, beside.read)
	}
	b.stop(t)
	c := start(t, config(copied))
	c.want(t, upTo(8)...)
	c.stop(t)
}

// lateFrame is a file system on which the first read of the frame at an offset finds zeros.
type lateFrame struct {
	vfs.FS
	off  int64
	read bool
}

func (l *lateFrame) Open(name string) (vfs.File, error) {
	file, err := l.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, fileSuffix) {
		return file, err
	}
	return lateFile{file, l}, nil
}

type lateFile struct {
	vfs.File
	fs *lateFrame
}

func (f lateFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if at := f.fs.off - off; !f.fs.read && at > 0 && at+8 <= int64(n) {
		f.fs.read = true
		clear(p[at : at+8])
	}
	return n, err
}

func TestACopyOfARottenLogFails(t *testing.T) {
	disk := vfs.NewMem()
	b := start(t, config(disk))
	b.commit(t, 1000, upTo(5)...)
	file, err := disk.Open("data/wal/000000000001.wal")
	if err == nil {
		_, err = file.WriteAt(bytes.Repeat([]byte{7}, 16), blockSize+2000)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = copyTo(t, disk, nil)
	if !errors.As(err, new(*CorruptError)) {
		t.Errorf("the copy of a damaged log: %v", err)
	}
	b.stop(t)
}

// TestAHoldPostponesCheckpoints, but not for ever, and not beyond its end.
func TestAHoldPostponesCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		b := start(t, config(disk))
		hold, err := Hold(disk, "data")
		if err != nil {
			t.Fatal(err)
		}
		id := uint64(0)
		grow := func(files int) {
			for range files * 12 { // of 1,000 bytes, in 16 KiB
				b.commit(t, 1000, id)
				id++
			}
			time.Sleep(2 * firstRetry)
			synctest.Wait()
		}
		grow(holdFiles - 3)
		if b.mu.snapshot != 0 {
			t.Errorf("a checkpoint at %d during the hold", b.mu.snapshot)
		}
		grow(10)
		if b.mu.snapshot == 0 {
			t.Error("the log grows without a checkpoint")
		}
		at := b.mu.snapshot
		grow(3)
		if b.mu.snapshot != at {
			t.Error("a checkpoint during the hold")
		}
		if err := hold.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * firstRetry)
		synctest.Wait()
		if b.mu.snapshot == at {
			t.Error("no checkpoint after the hold")
		}
		b.stop(t)
	})
}

// TestACopyOfADamagedSnapshot takes the snapshot before it, as a start does. A directory that does
// not start is not copied.
func TestACopyOfADamagedSnapshot(t *testing.T) {
	disk := vfs.NewMem()
	b := start(t, config(disk))
	for i := range uint64(40) {
		b.commit(t, 1000, 2*i)
		if err := b.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.commit(t, 1000, 2*i+1)
	}
	b.stop(t)
	d := &folder{fs: disk, dir: "data"}
	kept, err := d.snapshots()
	if err != nil || len(kept) != keepSnapshots {
		t.Fatalf("%v, %v", kept, err)
	}
	damage(t, disk, snapshotName("data", kept[0]), 30, flip, 1)
	copied, _, err := copyTo(t, disk, nil)
	if err != nil {
		t.Fatal(err)
	}
	b = start(t, config(copied))
	b.want(t, upTo(80)...)
	b.stop(t)

	damage(t, disk, snapshotName("data", kept[1]), 30, flip, 1)
	_, done, err := copyTo(t, disk, nil)
	if corrupt := (*CorruptError)(nil); !errors.As(err, &corrupt) || corrupt.LSN != kept[0] {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestACopyWithoutItsNewestFile is refused: the log ends before the snapshot.
func TestACopyWithoutItsNewestFile(t *testing.T) {
	disk := vfs.NewMem()
	b := start(t, config(disk))
	for i := range uint64(40) {
		b.commit(t, 1000, i)
		if err := b.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.stop(t)
	d := &folder{fs: disk, dir: "data"}
	files, err := d.listFiles()
	if err != nil {
		t.Fatal(err)
	}
	begun := files.begun()
	if err := disk.Remove(fileName("data", begun[len(begun)-1].generation)); err != nil {
		t.Fatal(err)
	}
	if _, done, err := copyTo(t, disk, nil); err == nil {
		t.Errorf("%+v", done)
	}
}
