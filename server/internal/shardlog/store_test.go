package shardlog

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

func TestConfig(t *testing.T) {
	err := Config{
		SegmentSize: 1, OpenFiles: 1, IndexEntries: 1, MaxReplay: 1, DrainDelay: -1,
		RetryDelay: -1,
	}.Validate()
	for _, field := range []string{
		"Log", "FS", "Dir", "Now", "SegmentSize", "OpenFiles",
		"IndexEntries", "MaxReplay", "DrainDelay", "RetryDelay",
	} {
		if err == nil || !strings.Contains(err.Error(), "Config."+field+" is") {
			t.Errorf("%s is not named in %v", field, err)
		}
	}
	if err := (Config{Log: new(wal.Log), FS: vfs.OS{}, Dir: "d", Now: time.Now}).Validate(); err != nil {
		t.Error(err)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("New took an empty configuration")
	}
}

// A record keeps its number and its bytes in every place that it passes through, also over a
// restart, and reading goes over the borders between these places.
func TestAppendRead(t *testing.T) {
	c := setup{fs: vfs.NewMem()}
	e := c.mustOpen(t)
	defer func() { e.shut(t) }()
	ctx := t.Context()
	if err := e.do(ctx, opCreate, 5); err != nil {
		t.Fatal(err)
	}
	want := 0
	check := func(where string) {
		t.Helper()
		sh := e.store.Shard(5)
		if oldest, next := sh.Bounds(); oldest != 1 || next != uint64(want+1) {
			t.Fatalf("%s: records [%d, %d), want %d of them", where, oldest, next, want)
		}
		got, err := sh.Read(ctx, 1, 10_000, 1<<30)
		if err == nil && len(got) != want {
			err = fmt.Errorf("%d of %d records in one read", len(got), want)
		}
		for i, r := range got {
			w := entry(5, i, 300)
			if r.Index != uint64(i+1) || r.PartitionKey != w.PartitionKey ||
				string(r.Data) != string(w.Data) {
				err = fmt.Errorf("record %d is %+v", i+1, r)
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
	}
	put := func() {
		t.Helper()
		numbers, err := e.append(ctx, 5, entries(5, want, 37, 300)...)
		if err != nil || numbers[0].Index != uint64(want+1) ||
			numbers[36].Index != uint64(want+37) || numbers[0].Arrival != numbers[36].Arrival {
			t.Fatalf("numbers %v, %v", numbers, err)
		}
		want += 37
	}
	put()
	check("in memory")
	e.drained(t)
	check("in segments")
	put()
	check("in both")
	for range 3 {
		if err := e.log.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
		put()
	}
	check("after checkpoints")
	if e.store.Bytes() < 4*37*300 {
		t.Errorf("segments of %d bytes", e.store.Bytes())
	}
	for range 2 {
		e.mustClose(t)
		e = c.mustOpen(t)
		check("after a restart")
		put()
		check("after appending to what a restart has found")
	}
}

func TestReadLimits(t *testing.T) {
	e := setup{fs: vfs.NewMem()}.mustOpen(t)
	defer e.mustClose(t)
	ctx := t.Context()
	if err := e.do(ctx, opCreate, 1); err != nil {
		t.Fatal(err)
	}
	for i := range 20 { // half of them in segments
		if _, err := e.append(ctx, 1, Entry{"keys", make([]byte, 96)}); err != nil {
			t.Fatal(err)
		}
		if i == 9 {
			e.drained(t)
		}
	}
	sh := e.store.Shard(1)
	for _, each := range []struct {
		from           uint64
		records, bytes int
		want           int
	}{
		{1, 0, 1000, 0},
		{1, 1, 1000, 1},
		{1, 100, 0, 1},
		{1, 100, 99, 1},
		{1, 100, 100, 1},
		{1, 100, 199, 1},
		{1, 100, 200, 2},
		{9, 3, 10_000, 3},
		{9, 100, 350, 3},
		{0, 100, 1 << 20, 20},
		{20, 9, 9999, 1},
		{21, 9, 9999, 0},
		{999, 9, 9999, 0},
		{11, 4, 1, 1},
		{11, 4, 400, 4},
	} {
		got, err := sh.Read(ctx, each.from, each.records, each.bytes)
		if err != nil || len(got) != each.want ||
			len(got) > 0 && got[0].Index != max(1, each.from) {
			t.Errorf("%+v: %d records, %v", each, len(got), err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := sh.Read(cancelled, 1, 1, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("read with a cancelled context: %v", err)
	}
	if _, err := sh.IndexAt(cancelled, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("IndexAt with a cancelled context: %v", err)
	}
}

func TestAppendRefused(t *testing.T) {
	e := setup{fs: vfs.NewMem()}.mustOpen(t)
	defer e.mustClose(t)
	ctx := t.Context()
	for id := ID(1); id <= 2; id++ {
		if err := e.do(ctx, opCreate, id); err != nil {
			t.Fatal(err)
		}
		if _, err := e.append(ctx, id, entry(id, 0, 10)); err != nil {
			t.Fatal(err)
		}
	}
	huge := Entry{Data: make([]byte, maxFrame)}
	large := Entry{Data: make([]byte, maxFrame-frameHeader)}
	for name, batch := range map[string][]Entry{
		"empty": {}, "a large record": {{}, huge}, "a large batch": {large, large, {}},
	} {
		if _, err := e.append(ctx, 1, batch...); !errors.Is(err, ErrBatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := e.do(ctx, opSeal, 1); err != nil {
		t.Fatal(err)
	}
	deleted := e.store.Shard(2)
	if err := e.do(ctx, opDelete, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := e.append(ctx, 1, entry(1, 1, 10)); !errors.Is(err, ErrSealed) {
		t.Errorf("append to a sealed shard: %v", err)
	}
	if !e.store.Shard(1).Sealed() || e.store.Shard(2) != nil {
		t.Error("the shard is not sealed, or is not deleted")
	}
	if _, next := e.store.Shard(1).Bounds(); next != 2 {
		t.Errorf("what was refused has moved next to %d", next)
	}
	err := e.log.Sequence(ctx, 10, func(tx *wal.Tx) {
		if _, _, err := deleted.Append(tx, entries(2, 1, 1, 10)); !errors.Is(err, ErrDeleted) {
			t.Errorf("append to a deleted shard: %v", err)
		}
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := deleted.Read(ctx, 1, 1, 1); !errors.Is(err, ErrDeleted) {
		t.Errorf("read of a deleted shard: %v", err)
	}
	if _, err := deleted.IndexAt(ctx, 1); !errors.Is(err, ErrDeleted) {
		t.Errorf("IndexAt of a deleted shard: %v", err)
	}
	if err := deleted.Wait(ctx, 99); err != nil {
		t.Errorf("wait on a deleted shard: %v", err)
	}
	e.store.Create(1)
	e.store.Seal(77)()
	e.store.Delete(77)()
	if err := e.store.Trim(ctx, 77, 1); err != nil {
		t.Errorf("trim of an unknown shard: %v", err)
	}
}

// Create, Seal and Delete may be repeated. Files of deleted shards are removed even if the
// process ends in between.
func TestDeleteRemovesFiles(t *testing.T) {
	fs := vfs.NewMem()
	c := setup{fs: fs}
	e := c.mustOpen(t)
	ctx := t.Context()
	for id := ID(1); id <= 3; id++ {
		if err := e.do(ctx, opCreate, id); err != nil {
			t.Fatal(err)
		}
		if _, err := e.append(ctx, id, entries(id, 0, 100, 100)...); err != nil {
			t.Fatal(err)
		}
	}
	e.drained(t)
	for range 2 {
		if err := e.do(ctx, opDelete, 1); err != nil {
			t.Fatal(err)
		}
	}
	e.waitFor(t, func() bool { return !exists(t, fs, "data/shards/1") })
	if err := e.log.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	// As if it had ended before the files were removed, or left some behind:
	for _, name := range []string{"data/shards/1", "data/shards/77"} {
		if err := fs.MkdirAll(name); err != nil {
			t.Fatal(err)
		}
		makeFile(t, fs, path.Join(name, segmentName(1)))
	}
	makeFile(t, fs, path.Join("data/shards/2", segmentName(9999)))
	makeFile(t, fs, "data/shards/2/notes.txt")
	e.mustClose(t)
	e = c.mustOpen(t)
	defer e.mustClose(t)
	for _, name := range []string{"1", "77", path.Join("2", segmentName(9999))} {
		if exists(t, fs, path.Join("data/shards", name)) {
			t.Errorf("%s is still there", name)
		}
	}
	if !exists(t, fs, "data/shards/2/notes.txt") {
		t.Error("a file that is not ours was removed")
	}
	for id := ID(2); id <= 3; id++ {
		got, err := readAll(ctx, e.store.Shard(id))
		if err != nil || len(got) != 100 {
			t.Errorf("shard %d: %d records, %v", id, len(got), err)
		}
	}
}

// waitFor waits until the drainer has made something true.
func (e *engine) waitFor(t testing.TB, ready func() bool) {
	t.Helper()
	if err := e.store.drain.drainedBy(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
}

func exists(t testing.TB, fs vfs.FS, name string) bool {
	t.Helper()
	_, err := fs.Stat(name)
	return err == nil
}

func makeFile(t testing.TB, fs vfs.FS, name string) {
	t.Helper()
	file, err := fs.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTrim(t *testing.T) {
	fs, now := vfs.NewMem(), new(clock)
	c := setup{fs: fs, now: now.now}
	e := c.mustOpen(t)
	defer func() { e.mustClose(t) }()
	ctx := t.Context()
	if err := e.do(ctx, opCreate, 1); err != nil {
		t.Fatal(err)
	}
	for i := range 100 { // about 27 records to a segment
		now.ms.Store(int64(1000 + i))
		if _, err := e.append(ctx, 1, entry(1, i, 110)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(oldest uint64) {
		t.Helper()
		sh := e.store.Shard(1)
		if got, next := sh.Bounds(); got != oldest || next != 101 {
			t.Fatalf("records [%d, %d), want [%d, 101)", got, next, oldest)
		}
		got, err := sh.Read(ctx, 1, 1, 1)
		if err != nil || len(got) > 0 && got[0].Index != oldest || len(got) == 0 && oldest < 101 {
			t.Fatalf("%+v, %v", got, err)
		}
		at, err := sh.IndexAt(ctx, 1000)
		if at != oldest || err != nil {
			t.Fatalf("IndexAt %d, %v", at, err)
		}
		if sh.LastArrival() != 1099 {
			t.Fatalf("LastArrival %d", sh.LastArrival())
		}
	}
	for _, each := range []struct {
		ms     int64
		oldest uint64
	}{{0, 1}, {1000, 1}, {1001, 2}, {1000, 2}, {1050, 51}, {1099, 100}, {2000, 101}, {1, 101}} {
		if err := e.store.Trim(ctx, 1, each.ms); err != nil {
			t.Fatal(err)
		}
		check(each.oldest)
		if each.ms == 1050 {
			e.drained(t)
			e.waitFor(t, func() bool { return !exists(t, fs, "data/shards/1/"+segmentName(1)) })
			if e.store.Bytes() == 0 {
				t.Error("segments with living records are gone")
			}
			e.mustClose(t)
			e = c.mustOpen(t)
			check(51)
		}
	}
	e.waitFor(t, func() bool { return e.store.Bytes() == 0 })
	for range 2 {
		e.mustClose(t)
		e = c.mustOpen(t)
		check(101)
	}
	numbers, err := e.append(ctx, 1, entry(1, 100, 10))
	if err != nil || numbers[0].Index != 101 || numbers[0].Arrival != 1099 {
		t.Errorf("after all was trimmed: %v, %v", numbers, err)
	}
}

// A reader that follows a shard sees every record once, in order, while the shard is written,
// drained, checkpointed and trimmed behind the reader.
func TestFollow(t *testing.T) {
	e := setup{fs: vfs.NewMem(), delay: 1, openFiles: 4, places: 1024}.mustOpen(t)
	defer e.mustClose(t)
	ctx := t.Context()
	const count = 3000
	var group sync.WaitGroup
	for id := ID(1); id <= 3; id++ {
		if err := e.do(ctx, opCreate, id); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for n := 0; n < count; n += 10 {
				if _, err := e.append(ctx, id, entries(id, n, 10, 100)...); err != nil {
					t.Error(err)
				}
			}
			if err := e.do(ctx, opSeal, id); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			if err := e.follow(ctx, id, count); err != nil {
				t.Errorf("shard %d: %v", id, err)
			}
		})
	}
	group.Wait()
}

func (e *engine) follow(ctx context.Context, id ID, count int) error {
	sh := e.store.Shard(id)
	from := uint64(1)
	for {
		if err := sh.Wait(ctx, from); err != nil {
			return err
		}
		sealed := sh.Sealed()
		got, err := sh.Read(ctx, from, 64, 1<<20)
		if err != nil {
			return err
		}
		for _, r := range got {
			want := entry(id, int(from)-1, 100)
			if r.Index != from || string(r.Data) != string(want.Data) {
				return fmt.Errorf("record %d is %+v", from, r)
			}
			from++
		}
		if len(got) == 0 && sealed {
			break
		}
		if from%500 < 64 && len(got) > 0 {
			err := e.store.Trim(ctx, id, got[0].Arrival)
			if err := errors.Join(err, e.log.Checkpoint(ctx)); err != nil {
				return err
			}
		}
	}
	if int(from)-1 != count {
		return fmt.Errorf("the end after %d of %d records", from-1, count)
	}
	return nil
}
