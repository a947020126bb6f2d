package shardlog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
)

func onSegment(kind vfs.OpKind) func(vfs.Op) bool {
	return func(op vfs.Op) bool {
		return op.Kind == kind && strings.HasSuffix(op.Name, segmentSuffix)
	}
}

// want checks that a shard holds exactly the records 1 to count of 100 bytes.
func (e *engine) want(t testing.TB, id ID, count int) {
	t.Helper()
	got, err := readAll(t.Context(), e.store.Shard(id))
	if err != nil || len(got) != count {
		t.Fatalf("shard %d: %d of %d records, %v", id, len(got), count, err)
	}
	for i, r := range got {
		w := entry(id, i, 100)
		if r.Index != uint64(i+1) || string(r.Data) != string(w.Data) {
			t.Fatalf("shard %d: record %d is %+v", id, i+1, r)
		}
	}
}

// While segments cannot be written, Append fails with the reason, reads continue, and no record
// is lost. Once they can be written, the store recovers by itself.
func TestStalled(t *testing.T) {
	for _, kind := range []vfs.OpKind{vfs.OpWrite, vfs.OpCreate, vfs.OpMkdir} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testStalled(t, kind) })
		})
	}
}

func testStalled(t *testing.T, kind vfs.OpKind) {
	var broken atomic.Bool
	full := errors.New("the disk is full")
	disk := vfs.NewMem()
	c := setup{fs: vfs.Inject(disk, func(op vfs.Op) error {
		if broken.Load() && op.Kind == kind && strings.Contains(op.Name, "shards/2") {
			return &vfs.ShortWrite{N: 50, Err: full}
		}
		return nil
	})}
	e := c.mustOpen(t)
	ctx := t.Context()
	for id := ID(1); id <= 2; id++ {
		if err := e.do(ctx, opCreate, id); err != nil {
			t.Fatal(err)
		}
	}
	broken.Store(true)
	for id := ID(1); id <= 2; id++ {
		if _, err := e.append(ctx, id, entries(id, 0, 30, 100)...); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * defaultDrainDelay) // virtual
	if err := e.store.Err(); !errors.Is(err, ErrStalled) || !errors.Is(err, full) {
		t.Fatalf("Err: %v", err)
	}
	_, err := e.append(ctx, 1, entry(1, 30, 100))
	if !errors.Is(err, ErrStalled) || !strings.Contains(err.Error(), "shard 2") {
		t.Errorf("append: %v", err)
	}
	e.want(t, 1, 30)
	e.want(t, 2, 30)
	if !e.store.Shard(1).drainedTo(31) {
		t.Error("a shard that cannot be written keeps another one back")
	}
	if err := e.log.Checkpoint(ctx); !errors.Is(err, ErrStalled) {
		t.Errorf("checkpoint: %v", err)
	}
	if err := e.store.Trim(ctx, 1, time.Now().Add(time.Hour).UnixMilli()); err != nil {
		t.Errorf("trim, which makes room: %v", err)
	}
	time.Sleep(2 * defaultDrainDelay)
	if e.store.Bytes() > 0 {
		t.Error("no room was made")
	}
	broken.Store(false)
	time.Sleep(2 * defaultRetryDelay)
	if err := e.store.Err(); err != nil {
		t.Fatalf("the disk is well: %v", err)
	}
	if _, err := e.append(ctx, 2, entries(2, 30, 10, 100)...); err != nil {
		t.Fatal(err)
	}
	e.want(t, 2, 40)
	if err := e.log.Checkpoint(ctx); err != nil {
		t.Errorf("checkpoint: %v", err)
	}
	e.mustClose(t)
	e = c.mustOpen(t)
	e.want(t, 2, 40)
	e.mustClose(t)
}

// A stalled store can be closed, and starts again with everything.
func TestCloseStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, broken := vfs.NewMem(), new(atomic.Bool)
		broken.Store(true)
		c := setup{fs: vfs.Inject(disk, func(op vfs.Op) error {
			if broken.Load() && onSegment(vfs.OpWrite)(op) {
				return vfs.ErrNoSpace
			}
			return nil
		})}
		e := c.mustOpen(t)
		ctx := t.Context()
		if err := e.do(ctx, opCreate, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := e.append(ctx, 1, entries(1, 0, 30, 100)...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := e.close(ctx); !errors.Is(err, ErrStalled) || !errors.Is(err, vfs.ErrNoSpace) {
			t.Errorf("close: %v", err)
		}
		broken.Store(false)
		e = c.mustOpen(t)
		e.want(t, 1, 30)
		e.mustClose(t)
	})
}

// After a failed sync no checkpoint may succeed, since the next sync may lie; the next start
// writes the segments again.
func TestSyncFails(t *testing.T) {
	for _, kind := range []vfs.OpKind{vfs.OpSync, vfs.OpSyncDir} {
		t.Run(string(kind), func(t *testing.T) { testSyncFails(t, kind) })
	}
}

func testSyncFails(t *testing.T, kind vfs.OpKind) {
	disk := vfs.NewCrashable()
	fail := vfs.FailNth(2, func(op vfs.Op) bool {
		return op.Kind == kind && strings.Contains(op.Name, "shards/1")
	}, nil)
	e := setup{fs: vfs.Inject(disk, fail)}.mustOpen(t)
	ctx := t.Context()
	if err := e.do(ctx, opCreate, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := e.append(ctx, 1, entries(1, 0, 5, 100)...); err != nil {
		t.Fatal(err)
	}
	if err := e.log.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := e.append(ctx, 1, entries(1, 5, 40, 100)...); err != nil {
		t.Fatal(err)
	}
	e.drained(t)
	if _, err := e.append(ctx, 1, entries(1, 45, 5, 100)...); err != nil {
		t.Fatal(err) // a second segment, with a new name
	}
	for range 3 {
		if err := e.log.Checkpoint(ctx); !errors.Is(err, ErrSync) ||
			!errors.Is(err, vfs.ErrInjected) {
			t.Fatalf("checkpoint: %v", err)
		}
	}
	if _, err := e.append(ctx, 1, entry(1, 50, 100)); !errors.Is(err, ErrSync) {
		t.Errorf("append: %v", err)
	}
	e.want(t, 1, 50)
	if err := e.close(ctx); !errors.Is(err, ErrSync) {
		t.Errorf("close: %v", err)
	}
	for seed := range uint64(20) {
		after := disk.Crash(rand.New(rand.NewPCG(seed, 1)))
		e := setup{fs: after}.mustOpen(t)
		e.want(t, 1, 50)
		e.mustClose(t)
	}
}

// A checkpoint names no byte that was written after the sync of its file.
func TestCheckpointBesideWrites(t *testing.T) {
	disk := vfs.NewCrashable()
	var e *engine
	var armed atomic.Bool
	e = setup{segmentSize: 1 << 20, fs: vfs.Inject(disk, func(op vfs.Op) error {
		if armed.Load() && op.Kind == vfs.OpSyncDir && strings.HasSuffix(op.Name, "shards/1") {
			armed.Store(false)
			if _, err := e.append(t.Context(), 1, entries(1, 10, 30, 100)...); err != nil {
				return err
			}
			e.drained(t)
		}
		return nil
	})}.mustOpen(t)
	defer func() { e.mustClose(t) }()
	ctx := t.Context()
	if err := e.do(ctx, opCreate, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := e.append(ctx, 1, entries(1, 0, 10, 100)...); err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	if err := e.log.Checkpoint(ctx); err != nil || armed.Load() {
		t.Fatalf("%v, the folder was synced: %v", err, !armed.Load())
	}
	for seed := range uint64(30) {
		after := setup{fs: disk.Crash(rand.New(rand.NewPCG(seed, 1)))}.mustOpen(t)
		after.want(t, 1, 40)
		after.mustClose(t)
	}
}

// A start keeps at most MaxReplay bytes in memory while a slow disk takes the rest. If the disk
// takes nothing it keeps them all, so that shards can be read and deleted.
func TestReplayIsBounded(t *testing.T) {
	disk := vfs.NewCrashable()
	e := setup{fs: disk, fileSize: 4 << 20}.mustOpen(t) // no checkpoint of its own accord
	ctx := t.Context()
	if err := e.do(ctx, opCreate, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := e.append(ctx, 1, entries(1, 0, 10, 100)...); err != nil {
		t.Fatal(err)
	}
	if err := e.log.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		if _, err := e.append(ctx, 1, entries(1, 10+100*i, 100, 100)...); err != nil {
			t.Fatal(err)
		}
	}
	after := disk.Crash(rand.New(rand.NewPCG(1, 1)))
	e.mustClose(t)
	full := vfs.Inject(after.Crash(rand.New(rand.NewPCG(2, 1))), func(op vfs.Op) error {
		if onSegment(vfs.OpCreate)(op) {
			return vfs.ErrNoSpace
		}
		return nil
	})
	e, err := setup{fs: full, maxReplay: 64 << 10}.open(ctx)
	if err != nil {
		t.Fatalf("start on a full disk: %v", err)
	}
	e.want(t, 1, 4010)
	if _, err := e.append(ctx, 1, entries(1, 4010, 1, 1)...); !errors.Is(err, ErrStalled) {
		t.Errorf("append on a full disk: %v", err)
	}
	if err := e.do(ctx, opCreate, 2); !errors.Is(err, ErrStalled) {
		t.Errorf("the log beside stalled segments: %v", err)
	}
	if err := e.store.Trim(ctx, 1, 1<<60); err != nil {
		t.Errorf("trim on a full disk: %v", err)
	}
	e.shut(t)
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		c := setup{maxReplay: 64 << 10, fs: vfs.Inject(after, func(op vfs.Op) error {
			if onSegment(vfs.OpWrite)(op) {
				<-slow
			}
			return nil
		})}
		var e *engine
		started := make(chan error, 1)
		go func() {
			var err error
			e, err = c.open(t.Context())
			started <- err
		}()
		synctest.Wait()
		if len(started) > 0 {
			t.Error("everything was taken into memory")
		}
		close(slow)
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		e.want(t, 1, 4010)
		e.mustClose(t)
	})
}

// Damage is reported with its file and offset, never skipped and never read; the records
// around it are read.
func TestDamage(t *testing.T) {
	for _, each := range []struct {
		name   string
		damage func(t *testing.T, disk *vfs.Mem, segment string)
		good   uint64 // the records before the damage
		offset int64
	}{
		{"rot", rot(5*128 + 60), 32 + 5, 5 * 128},
		{"rot in the length", rot(4), 32, 0},
		{"cut off", func(t *testing.T, disk *vfs.Mem, segment string) {
			resize(t, disk, segment, 10*128-1)
		}, 32 + 9, 9 * 128},
		{"missing", func(t *testing.T, disk *vfs.Mem, segment string) {
			if err := disk.Remove(segment); err != nil {
				t.Fatal(err)
			}
		}, 32, 0},
	} {
		t.Run(each.name, func(t *testing.T) {
			testDamage(t, each.damage, each.good, each.offset)
		})
	}
}

// The shard has segments of 32 records of 128 bytes, with arrivals from 1001 on.
func testDamage(t *testing.T, damage func(*testing.T, *vfs.Mem, string), good uint64,
	offset int64,
) {
	disk, now := vfs.NewMem(), new(clock)
	c := setup{fs: disk, now: now.now, segmentSize: 32 * 128}
	e := c.mustOpen(t)
	ctx := t.Context()
	put := func(i int) {
		t.Helper()
		now.ms.Store(int64(1000 + i))
		_, err := e.append(ctx, 1, Entry{fmt.Sprintf("%04d", i), make([]byte, 96)})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := e.do(ctx, opCreate, 1); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 4*32; i++ {
		put(i)
	}
	e.mustClose(t)
	file := "data/shards/1/" + segmentName(33)
	if info, err := disk.Stat(file); err != nil || info.Size() != 32*128 {
		t.Fatalf("the second segment: %v, %v", info, err)
	}
	damage(t, disk, file)
	e = c.mustOpen(t)
	defer e.mustClose(t)
	sh := e.store.Shard(1)
	got, err := sh.Read(ctx, 1, 1000, 1<<20)
	if err != nil || uint64(len(got)) != good {
		t.Errorf("%d records before the damage, not %d: %v", len(got), good, err)
	}
	var corrupt *CorruptError
	got, err = sh.Read(ctx, good+1, 1000, 1<<20)
	if !errors.As(err, &corrupt) || !errors.Is(err, ErrCorrupt) || len(got) > 0 {
		t.Fatalf("%d records at the damage: %v", len(got), err)
	}
	if corrupt.File != file || corrupt.Offset != offset || corrupt.Index != good+1 ||
		corrupt.Next != 65 {
		t.Errorf("%+v: %v", corrupt, err)
	}
	if _, err := sh.Read(ctx, 60, 1, 1); !errors.Is(err, ErrCorrupt) {
		t.Errorf("behind the damage, in the same file: %v", err)
	}
	if _, err := sh.IndexAt(ctx, 1050); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a time behind the damage, in the same file: %v", err)
	}
	if at, err := sh.IndexAt(ctx, 1070); at != 70 || err != nil {
		t.Errorf("a time in the next file: %d, %v", at, err)
	}
	got, err = sh.Read(ctx, corrupt.Next, 1000, 1<<20)
	if err != nil || len(got) != 2*32 || got[0].Index != 65 {
		t.Errorf("%d records after the damaged file, %v", len(got), err)
	}
	put(129)
	for _, each := range []struct {
		ms     int64
		oldest uint64
	}{{1010, 10}, {1050, 33}, {1070, 70}} { // no record is trimmed that is not old enough
		if err := e.store.Trim(ctx, 1, each.ms); err != nil {
			t.Error(err)
		}
		if oldest, _ := sh.Bounds(); oldest != each.oldest {
			t.Errorf("trimmed before %d: oldest %d, not %d", each.ms, oldest, each.oldest)
		}
	}
	got, err = sh.Read(ctx, 1, 1000, 1<<20)
	if err != nil || len(got) != 60 {
		t.Errorf("%d records after the damage was trimmed, %v", len(got), err)
	}
}

func rot(offset int64) func(*testing.T, *vfs.Mem, string) {
	return func(t *testing.T, disk *vfs.Mem, segment string) {
		file, err := disk.Open(segment)
		if err != nil {
			t.Fatal(err)
		}
		var b [1]byte
		if _, err := file.ReadAt(b[:], offset); err != nil {
			t.Fatal(err)
		}
		b[0] ^= 0x10
		if _, err := file.WriteAt(b[:], offset); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func resize(t *testing.T, disk *vfs.Mem, name string, size int64) {
	t.Helper()
	file, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Truncate(size), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// The last segment is missing or short: nothing is added to it, and appending goes on in
// another one.
func TestLastSegmentDamaged(t *testing.T) {
	for name, damage := range map[string]func(disk *vfs.Mem, file string){
		"missing": func(disk *vfs.Mem, file string) {
			if err := disk.Remove(file); err != nil {
				t.Fatal(err)
			}
		},
		"short": func(disk *vfs.Mem, file string) { resize(t, disk, file, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			c := setup{fs: vfs.NewMem()}
			e := c.mustOpen(t)
			ctx := t.Context()
			if err := e.do(ctx, opCreate, 1); err != nil {
				t.Fatal(err)
			}
			if _, err := e.append(ctx, 1, entries(1, 0, 10, 100)...); err != nil {
				t.Fatal(err)
			}
			e.mustClose(t)
			damage(c.fs.(*vfs.Mem), "data/shards/1/"+segmentName(1))
			for range 2 {
				e = c.mustOpen(t)
				if _, err := e.append(ctx, 1, entries(1, 10, 10, 100)...); err != nil {
					t.Fatal(err)
				}
				e.drained(t)
				if _, err := e.store.Shard(1).Read(ctx, 1, 1, 1); !errors.Is(err, ErrCorrupt) {
					t.Errorf("the lost records: %v", err)
				}
				got, err := e.store.Shard(1).Read(ctx, 11, 10, 1<<20)
				if err != nil || len(got) != 10 || got[0].Index != 11 {
					t.Errorf("%d records after them, %v", len(got), err)
				}
				e.mustClose(t)
			}
		})
	}
}
