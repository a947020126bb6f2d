package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

const rotPayload = 101 // with the header 125 bytes: 3 of padding

// rotting is a directory with three files of frames, each synced alone, and no snapshot.
func rotting(t *testing.T) (*vfs.Mem, []uint64) {
	t.Helper()
	disk := vfs.NewCrashable()
	cfg := config(disk)
	cfg.MarkDelay = -1
	b := start(t, cfg)
	b.journal.finish = func(context.Context) error { return errors.New("no checkpoint") }
	ids := upTo(250)
	b.commit(t, rotPayload, ids...)
	after := clone(disk)
	if err := b.Close(t.Context()); err == nil {
		t.Fatal("Close has made a snapshot")
	}
	return after, ids
}

// clone copies a disk, all of which is synced.
func clone(disk *vfs.Mem) *vfs.Mem { return disk.Crash(rand.New(rand.NewPCG(0, 0))) }

func damage(t *testing.T, disk vfs.FS, name string, off int64, change func(p []byte), n int) {
	t.Helper()
	f, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, n)
	_, err = f.ReadAt(p, off)
	if err == nil {
		change(p)
		_, err = f.WriteAt(p, off)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func flip(p []byte) {
	for i := range p {
		p[i] ^= 0x40
	}
}

// outcome starts a log and returns its frames or the damage that it reports.
func outcome(t *testing.T, disk vfs.FS) ([]uint64, *CorruptError) {
	t.Helper()
	b, err := launch(t.Context(), config(disk))
	if err == nil {
		defer b.stop(t)
		return b.journal.entries, nil
	}
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) {
		t.Fatalf("Start = %v", err)
	}
	return nil, corrupt
}

func TestRotIsReportedAndATornTailIsNot(t *testing.T) {
	disk, ids := rotting(t)
	perFile := (16<<10 - blockSize) / frameSize(rotPayload)
	for id := range ids {
		file, in := id/perFile+1, id%perFile
		name := fileName("data", uint64(file))
		begin := int64(blockSize + in*frameSize(rotPayload))
		step := 1
		if id%50 != 0 && id < len(ids)-3 {
			step = 41 // a sample
		}
		for off := 0; off < frameSize(rotPayload); off += step {
			hurt := clone(disk)
			damage(t, hurt, name, begin+int64(off), flip, 1)
			found, corrupt := outcome(t, hurt)
			where := fmt.Sprintf("frame %d, byte %d", id, off)
			switch {
			case off >= frameHeader+rotPayload: // padding means nothing
				if !slices.Equal(found, ids) {
					t.Fatalf("%s: %d frames, %v", where, len(found), corrupt)
				}
			case id == len(ids)-1: // looks like a torn tail: nothing was written after it
				if !slices.Equal(found, ids[:id]) {
					t.Fatalf("%s: %d frames, %v", where, len(found), corrupt)
				}
			case corrupt == nil || corrupt.File != name || corrupt.Offset != begin:
				t.Fatalf("%s: %d frames, %v", where, len(found), corrupt)
			}
		}
	}
}

func TestRotInAFirstBlock(t *testing.T) {
	disk, ids := rotting(t)
	for generation := uint64(1); generation <= 3; generation++ {
		for off := range int64(blockUsed) {
			hurt := clone(disk)
			damage(t, hurt, fileName("data", generation), off, flip, 1)
			if found, corrupt := outcome(t, hurt); corrupt == nil {
				t.Fatalf("file %d, byte %d: %d frames", generation, off, len(found))
			}
		}
		hurt := clone(disk)
		damage(t, hurt, fileName("data", generation), blockUsed, flip, blockSize-blockUsed)
		if found, corrupt := outcome(t, hurt); !slices.Equal(found, ids) {
			t.Fatalf("unused bytes of file %d: %d frames, %v", generation, len(found), corrupt)
		}
	}
}

func TestMissingFiles(t *testing.T) {
	disk, _ := rotting(t)
	for generation := uint64(1); generation <= 3; generation++ {
		hurt := clone(disk)
		if err := hurt.Remove(fileName("data", generation)); err != nil {
			t.Fatal(err)
		}
		if found, corrupt := outcome(t, hurt); corrupt == nil {
			t.Errorf("without file %d: %d frames", generation, len(found))
		}
	}
	b := start(t, config(disk))
	b.stop(t) // with a snapshot
	if err := errors.Join(removeAll(disk, path.Join("data", walDir))); err != nil {
		t.Fatal(err)
	}
	if found, corrupt := outcome(t, disk); corrupt == nil {
		t.Errorf("a snapshot without a log: %d frames", len(found))
	}
}

func removeAll(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	for _, name := range names {
		err = errors.Join(err, fs.Remove(path.Join(dir, name)))
	}
	return err
}

// twoSnapshots is a directory with two snapshots, frames before, between and behind them, and
// without the log's beginning.
func twoSnapshots(t *testing.T) (disk *vfs.Mem, ids []uint64, newest LSN) {
	t.Helper()
	disk = vfs.NewCrashable()
	ids = upTo(100)
	for life := range 4 {
		b := start(t, config(disk))
		var ending atomic.Bool // only Close makes a checkpoint: a file or more lies between two
		b.journal.finish = func(context.Context) error {
			if !ending.Load() {
				return errors.New("not yet")
			}
			return nil
		}
		b.commit(t, 900, ids[life*20:life*20+20]...)
		ending.Store(true)
		b.stop(t)
		newest = b.Durable()
	}
	b := start(t, config(disk))
	defer b.stop(t)
	b.commit(t, 900, ids[80:85]...)
	if b.mu.segments[0].start == 0 {
		t.Fatal("the log reaches back to its beginning")
	}
	// Make the removals durable: clone would undo them.
	if err := errors.Join(disk.SyncDir("data"), disk.SyncDir("data/wal")); err != nil {
		t.Fatal(err)
	}
	return clone(disk), ids[:85], newest
}

// A start with a damaged snapshot uses the one before it, and the log from there on.
func TestRotInASnapshot(t *testing.T) {
	disk, ids, newest := twoSnapshots(t)
	name := snapshotName("data", newest)
	info, err := disk.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	cut := func(size int64) func(hurt *vfs.Mem) error {
		return func(hurt *vfs.Mem) error {
			f, err := hurt.Open(name)
			if err != nil {
				return err
			}
			return errors.Join(f.Truncate(size), f.Close())
		}
	}
	harms := map[string]func(hurt *vfs.Mem) error{
		"moved": func(hurt *vfs.Mem) error { return hurt.Rename(name, snapshotName("data", newest+8)) },
		"gone":  func(hurt *vfs.Mem) error { return hurt.Remove(name) },
	}
	for off := range info.Size() {
		harms[fmt.Sprintf("byte %d", off)] = func(hurt *vfs.Mem) error {
			damage(t, hurt, name, off, flip, 1)
			return nil
		}
	}
	for _, size := range []int64{0, 10, 24, 30, info.Size() - 1, info.Size() + 1} {
		harms[fmt.Sprintf("of %d bytes", size)] = cut(size)
	}
	for what, harm := range harms {
		hurt := clone(disk)
		if err := harm(hurt); err != nil {
			t.Fatal(err)
		}
		if found, corrupt := outcome(t, hurt); !slices.Equal(found, ids) {
			t.Fatalf("%s: %d, %v", what, found, corrupt)
		}
		if found, corrupt := outcome(t, hurt); !slices.Equal(found, ids) { // after its own end
			t.Fatalf("%s, second start: %d, %v", what, found, corrupt)
		}
	}
}

// Before the first snapshot lies the empty state; the log from its beginning on is kept.
func TestRotInTheFirstSnapshot(t *testing.T) {
	disk := vfs.NewCrashable()
	b := start(t, config(disk))
	b.commit(t, 20, upTo(5)...)
	b.stop(t)
	damage(t, disk, snapshotName("data", b.Durable()), 30, flip, 1)
	if found, corrupt := outcome(t, disk); !slices.Equal(found, upTo(5)) {
		t.Fatalf("%d, %v", found, corrupt)
	}
}

// With both snapshots damaged a start fails, and names the newest.
func TestRotInBothSnapshots(t *testing.T) {
	disk := vfs.NewCrashable()
	for range 3 { // so that the beginning of the log is gone
		b := start(t, config(disk))
		b.commit(t, 900, upTo(50)...)
		b.stop(t)
	}
	names, err := disk.List("data")
	if err != nil {
		t.Fatal(err)
	}
	var newest string
	found := 0
	for _, name := range names {
		if _, ok := snapshotLSN(name); ok {
			found++
			newest = path.Join("data", name)
			damage(t, disk, newest, 30, flip, 1)
		}
	}
	if _, corrupt := outcome(t, disk); found != 2 || corrupt == nil || corrupt.File != newest {
		t.Errorf("%d snapshots, %v", found, corrupt)
	}
}

// On a full disk the files before the only snapshot give way, in any order. That is no damage.
func TestOneSnapshotWithoutTheFilesBefore(t *testing.T) {
	disk := vfs.NewCrashable()
	b := start(t, config(disk))
	b.journal.before(noCheckpoint)
	b.commit(t, 900, upTo(60)...)
	b.journal.before(nil)
	b.stop(t)
	for generation := uint64(1); generation <= 2; generation++ {
		left := clone(disk)
		if err := left.Remove(fileName("data", generation)); err != nil {
			t.Fatal(err)
		}
		if found := inspect(t, left); len(found.Spare)+len(found.Damage) > 0 {
			t.Errorf("without file %d: %v, %v", generation, found.Spare, found.Damage)
		}
	}
}

// Damage to the log between the two snapshots costs nothing as long as the newest one is whole. An
// inspection lists it, since the older snapshot is of no use then.
func TestRotBetweenTheSnapshots(t *testing.T) {
	disk, ids, newest := twoSnapshots(t)
	older := olderSnapshot(t, disk, newest)
	for try := 0; newest-older < 16<<10; try++ { // a checkpoint came late, just before the last one
		if try == 100 {
			t.Fatal("the two snapshots are never far from each other")
		}
		disk, ids, newest = twoSnapshots(t)
		older = olderSnapshot(t, disk, newest)
	}
	whole := inspect(t, disk)
	if len(whole.Spare)+len(whole.Damage) > 0 {
		t.Fatalf("undamaged: %v, %v", whole.Spare, whole.Damage)
	}
	cases := 0
	begun := begunFiles(t, disk)
	for i, s := range begun {
		end := newest
		if i+1 < len(begun) {
			end = min(end, begun[i+1].start)
		}
		name := fileName("data", s.generation)
		for off := int64(blockSize); off < s.size; off += 100 {
			at := s.start + LSN(off-blockSize)
			if at < older || at+LSN(frameSize(900)) > end {
				continue
			}
			hurt := clone(disk)
			damage(t, hurt, name, off, flip, frameAlign)
			found := inspect(t, hurt)
			if len(found.Damage) > 0 || len(found.Spare) != 1 || found.Spare[0].File != name {
				t.Fatalf("%s, byte %d: %v, %v", name, off, found.Damage, found.Spare)
			}
			if frames, corrupt := outcome(t, hurt); corrupt != nil || !slices.Equal(frames, ids) {
				t.Fatalf("%s, byte %d: %d frames, %v", name, off, len(frames), corrupt)
			}
			cases++
		}
	}
	if cases < 100 {
		t.Errorf("only %d cases", cases)
	}
}

// olderSnapshot returns the place of the snapshot beside the newest one; 0 if there is none.
func olderSnapshot(t *testing.T, disk vfs.FS, newest LSN) (older LSN) {
	t.Helper()
	names, err := disk.List("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if at, ok := snapshotLSN(name); ok && at != newest {
			older = at
		}
	}
	return older
}

// A log in memory keeps one snapshot.
func TestOneSnapshotInMemory(t *testing.T) {
	disk := vfs.NewMem()
	for range 3 {
		cfg := config(disk)
		cfg.KeepOne = true
		b := start(t, cfg)
		b.commit(t, 900, upTo(50)...)
		b.stop(t)
	}
	names, err := disk.List("data")
	if err != nil || len(names) != 4 { // FORMAT, LOCK, a snapshot, wal
		t.Errorf("%q, %v", names, err)
	}
}

// An error of reading is no torn tail.
func TestAReadErrorIsNotTheEnd(t *testing.T) {
	disk, ids := rotting(t)
	for nth := 1; ; nth++ {
		fs := vfs.Inject(clone(disk), vfs.FailNth(nth, func(op vfs.Op) bool {
			return op.Kind == vfs.OpRead || op.Kind == vfs.OpSize || op.Kind == vfs.OpOpen ||
				op.Kind == vfs.OpList
		}, nil))
		b, err := launch(t.Context(), config(fs))
		if err == nil { // that many are not made
			b.want(t, ids...)
			b.stop(t)
			if nth < 10 {
				t.Errorf("a start read only %d times", nth)
			}
			return
		}
		if !errors.Is(err, vfs.ErrInjected) {
			t.Fatalf("call %d: %v", nth, err)
		}
	}
}

// Generations only grow: over starts, crashes and recycled files.
func TestGenerationsAreUsedOnce(t *testing.T) {
	disk := vfs.NewCrashable()
	rng := rand.New(rand.NewPCG(5, 5))
	var last uint64
	for life := range 30 {
		b := start(t, config(disk))
		first := b.current().generation
		if first <= last {
			t.Fatalf("life %d starts with generation %d after %d", life, first, last)
		}
		for i := range uint64(rng.IntN(40)) {
			b.commit(t, 900, uint64(life)*100+i)
		}
		if life%2 == 0 { // the one that is made by itself may come too late in a short life
			if err := b.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		last = b.current().generation
		disk = disk.Crash(rng)
		b.stop(t)
		names, err := disk.List("data/wal")
		if err != nil || len(names) > 14 { // of two lives, and those kept
			t.Fatalf("files %q, %v", names, err)
		}
	}
	if last < 35 {
		t.Errorf("only %d generations: nothing was rotated", last)
	}
}
