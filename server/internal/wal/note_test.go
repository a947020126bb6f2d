package wal

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// killed is a disk as a kill leaves it after some lives of a log: each writes that many frames
// of 1000 bytes, the last ends by the kill, and the others cleanly.
func killed(t *testing.T, frames ...int) (disk *vfs.Mem, ids []uint64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		live := vfs.NewCrashable()
		cfg := config(live)
		cfg.MarkDelay = -1
		for i, n := range frames {
			b := start(t, cfg)
			for range n {
				b.commit(t, 1000, uint64(len(ids)))
				ids = append(ids, uint64(len(ids)))
			}
			synctest.Wait() // checkpoints and the file made ahead
			if i == len(frames)-1 {
				disk = clone(live)
			}
			b.stop(t)
		}
	})
	return disk, ids
}

// newest returns the generation of the newest file that was begun.
func newest(t *testing.T, disk *vfs.Mem) uint64 {
	t.Helper()
	return newestFile(t, disk).generation
}

func newestFile(t *testing.T, disk *vfs.Mem) segment {
	t.Helper()
	begun := begunFiles(t, disk)
	return begun[len(begun)-1]
}

func begunFiles(t *testing.T, disk *vfs.Mem) []segment {
	t.Helper()
	log, err := Open(Config{FS: disk, Dir: "data", ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	files, err := log.folder.listFiles()
	if err = errors.Join(err, log.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return files.begun()
}

// overwrite gives a file the content of another one.
func overwrite(t *testing.T, disk vfs.FS, from, to string) {
	t.Helper()
	file, err := disk.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 16<<10)
	if _, err = file.ReadAt(content, 0); err == nil {
		damage(t, disk, to, 0, func(p []byte) { copy(p, content) }, len(content))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// The newest file as a whole is missed, wherever in the life of a directory it was taken away,
// by a start and by the start after that.
func TestTheNewestFileIsMissed(t *testing.T) {
	for name, frames := range map[string][]int{
		"the first file":                  {3},
		"the second":                      {15},
		"after a checkpoint":              {20},
		"after files were used again":     {100},
		"the first of a second life":      {3, 3},
		"the first after an empty life":   {0, 3},
		"the first after a checkpoint":    {30, 3},
		"the second of a second life":     {3, 15},
		"a third life, after another one": {3, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			disk, ids := killed(t, frames...)
			if found, corrupt := outcome(t, clone(disk)); corrupt != nil || !slices.Equal(found, ids) {
				t.Fatalf("undamaged: %v, %v", found, corrupt)
			}
			gone := fileName("data", newest(t, disk))
			if err := disk.Remove(gone); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if found, corrupt := outcome(t, disk); corrupt == nil {
					t.Fatalf("without %s: %d frames of %d", gone, len(found), len(ids))
				}
			}
			if found := inspect(t, disk); len(found.Damage) == 0 {
				t.Error("Inspect has found nothing")
			}
		})
	}
}

// The newest file has the content of another one, as after a write that the disk lost or put into
// the wrong file. If the snapshot's place was in the newest file, a start notices.
func TestTheNewestFileHasTheContentOfAnotherOne(t *testing.T) {
	for name, frames := range map[string][]int{
		"one checkpoint": {0, 18}, "more frames behind it": {0, 22}, "many files": {0, 82},
	} {
		t.Run(name, func(t *testing.T) {
			disk, ids := killed(t, frames...)
			last := newestFile(t, disk)
			for try := 0; inspect(t, disk).Snapshot.LSN <= last.start; try++ { // checkpoints come late
				if try == 100 {
					t.Fatal("no snapshot has its place in the newest file")
				}
				disk, ids = killed(t, frames...)
				last = newestFile(t, disk)
			}
			overwrite(t, disk, fileName("data", last.generation-1), fileName("data", last.generation))
			for range 2 {
				if found, corrupt := outcome(t, disk); corrupt == nil {
					t.Fatalf("%d frames of %d", len(found), len(ids))
				}
			}
			if found := inspect(t, disk); len(found.Damage) == 0 {
				t.Error("Inspect has found nothing")
			}
		})
	}
}

// The log's files are those of an older copy of the directory, and the snapshot is the present one.
func TestTheLogIsOlderThanTheSnapshot(t *testing.T) {
	for name, of := range map[string]struct {
		frames uint64
		killed bool
	}{
		"in the same file": {frames: 5}, "in another file": {frames: 40},
		"in another file than that of a killed copy": {frames: 40, killed: true},
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewCrashable()
			b := start(t, config(disk))
			b.commit(t, 900, upTo(5)...)
			old := clone(disk)
			b.stop(t)
			if !of.killed {
				old = clone(disk)
			}
			b = start(t, config(disk))
			b.commit(t, 900, upTo(of.frames)...)
			b.stop(t)
			at := b.Durable()
			mixed := clone(old)
			copyFile(t, disk, mixed, snapshotName("data", at))
			for range 2 {
				if found, corrupt := outcome(t, mixed); corrupt == nil {
					t.Fatalf("a snapshot at %d: %d frames", at, len(found))
				}
			}
			if found := inspect(t, mixed); len(found.Damage) == 0 {
				t.Error("Inspect has found nothing")
			}
		})
	}
}

// A note that is older than the frames behind it is no sign of damage.
func TestFramesBehindANote(t *testing.T) {
	disk := vfs.NewCrashable()
	b := start(t, config(disk))
	b.commit(t, 900, upTo(3)...)
	end := b.Durable()
	b.commit(t, 900, upTo(2)...)
	if err := b.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	killed := clone(disk)
	b.stop(t)
	old := encodeNote(newest(t, killed), end, 0, false)
	damage(t, killed, fileName("data", newest(t, killed)), noteAt,
		func(p []byte) { copy(p, old) }, noteSize)
	if found, corrupt := outcome(t, killed); corrupt != nil {
		t.Errorf("%d frames, %v", len(found), corrupt)
	}
}

func copyFile(t *testing.T, from, to vfs.FS, name string) {
	t.Helper()
	in, err := from.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	size, err := in.Size()
	content := make([]byte, size)
	if err == nil {
		_, err = in.ReadAt(content, 0)
	}
	out, createErr := to.Create(name)
	if err = errors.Join(err, createErr, in.Close()); err == nil {
		_, err = out.WriteAt(content, 0)
		err = errors.Join(err, out.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// inspect reads a directory into a journal of its own.
func inspect(t *testing.T, disk vfs.FS) *Inspection {
	t.Helper()
	log, err := Open(Config{FS: disk, Dir: "data", ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	log.Register(KindRecords, &journal{})
	found, err := log.Inspect(t.Context())
	if err = errors.Join(err, log.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return found
}

// Every start reports damage behind an announcement that the start would overwrite: the first one
// has changed nothing.
func TestAnAnnouncedFileThatRottedIsReportedAgain(t *testing.T) {
	disk, _ := killed(t, 15)
	damage(t, disk, fileName("data", newest(t, disk)), 0, flip, 1)
	for range 2 {
		if found, corrupt := outcome(t, disk); corrupt == nil {
			t.Fatalf("%d frames", len(found))
		}
	}
}

// A damaged note is ignored, and no frame is lost by it.
func TestADamagedNoteIsNone(t *testing.T) {
	disk, ids := killed(t, 15)
	for generation := uint64(1); generation <= newest(t, disk); generation++ {
		for off := range int64(noteSize) {
			hurt := clone(disk)
			damage(t, hurt, fileName("data", generation), noteAt+off, flip, 1)
			if found, corrupt := outcome(t, hurt); corrupt != nil || !slices.Equal(found, ids) {
				t.Fatalf("file %d, byte %d: %v, %v", generation, off, found, corrupt)
			}
		}
	}
}

// A note does not hide rot before the end that it records.
func TestANoteBehindRot(t *testing.T) {
	disk, _ := killed(t, 5)
	end := LSN(5 * frameSize(1000))
	for _, told := range []LSN{end, end - 8, 0} {
		hurt := clone(disk)
		name := fileName("data", 1)
		damage(t, hurt, name, noteAt, func(p []byte) { copy(p, encodeNote(1, told, 0, true)) }, noteSize)
		damage(t, hurt, name, blockSize+int64(frameSize(1000))+100, flip, 1)
		if found, corrupt := outcome(t, hurt); corrupt == nil {
			t.Errorf("a note of %d: %v", told, found)
		}
	}
}

// A note can become durable before the frames before its end: that is a torn tail.
func TestANoteBeyondATornTail(t *testing.T) {
	disk, ids := killed(t, 3)
	name := fileName("data", 1)
	end := LSN(3 * frameSize(1000))
	damage(t, disk, name, noteAt, func(p []byte) { copy(p, encodeNote(1, end, 0, true)) }, noteSize)
	if found, corrupt := outcome(t, clone(disk)); corrupt != nil || !slices.Equal(found, ids) {
		t.Fatalf("whole: %v, %v", found, corrupt)
	}
	damage(t, disk, name, blockSize+int64(end)-8, flip, 1)
	if found, corrupt := outcome(t, disk); corrupt != nil || !slices.Equal(found, ids[:2]) {
		t.Fatalf("torn: %v, %v", found, corrupt)
	}
}

// After a clean end a start does not look through the rest of the file, and through no other.
func TestAStartAfterACleanEndReadsLittle(t *testing.T) {
	for name, c := range map[string]struct {
		close       bool
		least, most int64
	}{
		"closed": {true, 1, readWindow + 1<<10},
		"killed": {false, 900 << 10, 2 << 20},
	} {
		disk := vfs.NewCrashable()
		cfg := config(disk)
		cfg.FileSize = 1 << 20
		b := start(t, cfg)
		b.commit(t, 100, upTo(5)...)
		after := clone(disk)
		b.stop(t)
		if c.close {
			after = disk
		}
		var bytesRead atomic.Int64
		cfg.FS = vfs.Inject(after, func(op vfs.Op) error {
			if op.Kind == vfs.OpRead {
				bytesRead.Add(op.Len)
			}
			return nil
		})
		b = start(t, cfg)
		b.want(t, upTo(5)...)
		if n := bytesRead.Load(); n < c.least || n > c.most {
			t.Errorf("%s: a start reads %d bytes", name, n)
		}
		b.stop(t)
	}
}

// FORMAT is written when a file was begun: a directory with it and without such a file has lost
// its log. One that lacks both is new, also if a start was cut off in it.
func TestFormatProvesThatALogExisted(t *testing.T) {
	for changes := 1; ; changes++ {
		disk := vfs.NewMem()
		left := changes
		cfg := config(vfs.Inject(disk, func(op vfs.Op) error {
			if op.Kind.Changes() {
				left--
			}
			if left < 0 {
				return errKilled
			}
			return nil
		}))
		log, err := Open(cfg)
		if err == nil {
			err = errors.Join(log.Start(t.Context()), log.Close(t.Context()))
		}
		if err == nil {
			break
		}
		_, noFormat := disk.Stat("data/FORMAT")
		if _, err := disk.Stat("data/wal/000000000001.wal"); err != nil && noFormat == nil {
			t.Fatalf("after %d changes there is FORMAT and no log", changes)
		}
		b := start(t, config(disk))
		b.commit(t, 100, 0)
		b.stop(t)
		start(t, config(disk)).stop(t)
		if err := removeAll(disk, "data/wal"); err != nil {
			t.Fatal(err)
		}
		if _, corrupt := outcome(t, disk); corrupt == nil {
			t.Fatal("without its log")
		}
	}
}

func FuzzNote(f *testing.F) {
	f.Add([]byte{}, uint64(0))
	f.Add(make([]byte, noteSize), uint64(0))
	f.Add(encodeNote(7, 64, 0, true), uint64(7))
	f.Add(encodeNote(7, 1<<40, 9, false), uint64(7))
	f.Add(encodeNote(7, 64, 7, false), uint64(7))
	f.Add(encodeNote(6, 64, 8, false), uint64(7)) // of the file's life before: a torn first block
	f.Fuzz(func(t *testing.T, p []byte, generation uint64) {
		n := decodeNote(p, generation)
		switch {
		case !n.ok && n != note{}:
			t.Fatalf("half a note: %+v", n)
		case n.ok && (n.next != 0 && n.next <= generation ||
			!bytes.Equal(p[:noteSize], encodeNote(generation, n.end, n.next, n.clean))):
			t.Fatalf("%x of %d does not encode back: %+v", p, generation, n)
		}
	})
}

// A rotation that fails in the middle, at each of its changes of the disk, loses nothing.
func TestAChangeOfFilesThatIsCutOff(t *testing.T) {
	for left := int64(1); ; left++ {
		disk := vfs.NewCrashable()
		var armed atomic.Bool
		var changes atomic.Int64
		b := start(t, config(vfs.Inject(disk, func(op vfs.Op) error {
			if armed.Load() && op.Kind.Changes() && changes.Add(1) >= left {
				return errKilled
			}
			return nil
		})))
		b.journal.finish = func(context.Context) error { return errors.New("no checkpoint") }
		b.commit(t, 1000, upTo(11)...)
		armed.Store(true)
		lsn, err := b.put(t.Context(), 11, 1500)
		if err == nil {
			err = b.Wait(t.Context(), lsn)
		}
		armed.Store(false)
		if closed := b.Close(t.Context()); closed == nil {
			t.Error("Close has made a snapshot")
		}
		again := start(t, config(disk))
		if n := len(again.journal.entries); n < 11 || n < 12 && err == nil {
			t.Fatalf("change %d: %d frames are left, %v", left, n, err)
		}
		again.stop(t)
		if err == nil {
			if left < 4 {
				t.Errorf("a change of files is %d changes of the disk", left)
			}
			return
		}
	}
}

// lastSyncFails is a disk on which a start has failed with the sync of its own file: that one is
// shown as begun, and is not on the disk.
func lastSyncFails(t *testing.T, disk *vfs.Mem) (after *vfs.Mem) {
	t.Helper()
	for nth := 1; ; nth++ { // of the syncs of log files, that is the last one
		tried := clone(disk)
		b, err := launch(t.Context(), config(vfs.Inject(tried, vfs.FailNth(nth,
			func(op vfs.Op) bool { return op.Kind == vfs.OpSync && isLogFile(op) }, nil))))
		if err == nil {
			_ = b.Close(t.Context()) // the call that fails may be one of the background
			return after
		}
		after = tried
	}
}

// The next start must not change the other files before it has made such a file durable, at
// whichever of its steps the power fails.
func TestAFileThatIsNotDurableIsNotReliedUpon(t *testing.T) {
	whole, ids := vfs.NewCrashable(), upTo(30)
	b := start(t, config(whole))
	b.commit(t, 1000, ids...)
	b.stop(t) // the snapshot needs nothing of the file that ends there
	for left := int64(1); ; left++ {
		for seed := range uint64(5) {
			disk := lastSyncFails(t, whole)
			rng := rand.New(rand.NewPCG(seed, uint64(left)))
			var changes atomic.Int64
			var after atomic.Pointer[vfs.Mem]
			b, err := launch(t.Context(), config(vfs.Inject(disk, func(op vfs.Op) error {
				if op.Kind.Changes() && changes.Add(1) == left {
					after.Store(disk.Crash(rng))
				}
				return nil
			})))
			if err != nil {
				t.Fatal(err)
			}
			crashed := after.Load()
			b.stop(t)
			if crashed == nil {
				return // a start makes fewer changes
			}
			if found, corrupt := outcome(t, crashed); corrupt != nil || !slices.Equal(found, ids) {
				t.Fatalf("step %d, seed %d: %d frames of %d, %v", left, seed, len(found), len(ids),
					corrupt)
			}
		}
	}
}
