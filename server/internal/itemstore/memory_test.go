package itemstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// openBounded is open with a bound of the items' memory.
func openBounded(t testing.TB, fs vfs.FS, most int64) bench {
	t.Helper()
	log, err := wal.Open(wal.Config{FS: fs, Dir: "data", FileSize: 64 << 10, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	store := New(Config{Log: log, MaxMemory: most})
	if err := log.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return bench{log, store}
}

func (b bench) tryPut(ctx context.Context, table *Table, item Item) error {
	key, err := table.Schema().Key(item)
	if err == nil {
		_, err = b.Update(ctx, table, key, 100, func(Item) (Item, error) { return item, nil })
	}
	return err
}

// TestTheBoundOfMemory fills a store. Growth is refused then; renewals and deletions go on.
func TestTheBoundOfMemory(t *testing.T) {
	disk := vfs.NewMem()
	const most = 200 << 10
	b := openBounded(t, disk, most)
	table := b.create(t, "t", byID)
	lease := func(counter int64, checkpoint string) Item {
		return Item{
			"id": String("lease"), "leaseCounter": NumberOf(counter),
			"checkpoint": String(checkpoint),
		}
	}
	b.put(t, table, lease(1, "TRIM_HORIZON"))
	n, err := 0, error(nil)
	for ; n < 1000 && err == nil; n++ {
		err = b.tryPut(t.Context(), table, sized(fmt.Sprint(n), 1000, 0))
	}
	if used := b.Memory().Used; !errors.Is(err, ErrItemsMemory) || used > most || used < most*9/10 {
		t.Fatalf("after %d items: %v, memory %d of %d", n, err, used, most)
	}
	used := b.Memory().Used
	b.close(t)
	b = openBounded(t, disk, used) // not a byte is free
	table = b.table(t, "t")
	for counter := range int64(20000) {
		if counter > 300 && counter%100 > 3 {
			continue
		}
		if err := b.tryPut(t.Context(), table, lease(counter, strings.Repeat("4", 56))); err != nil {
			t.Fatalf("renewal %d: %v", counter, err)
		}
	}
	if err := b.tryPut(t.Context(), table, sized("0", 2000, 0)); !errors.Is(err, ErrItemsMemory) {
		t.Errorf("an item that grows: %v", err)
	}
	if err := b.tryPut(t.Context(), table, sized("0", 900, 0)); err != nil {
		t.Errorf("an item that shrinks: %v", err)
	}
	_, err = b.Transact(t.Context(), []Step{{
		Table: table, Key: id("new"),
		Decide: func(Item) (Item, error) { return sized("new", 1000, 0), nil },
	}}, 2000, nil)
	if !errors.Is(err, ErrItemsMemory) {
		t.Errorf("a transaction that grows: %v", err)
	}
	used = b.Memory().Used
	b.close(t)
	b = openBounded(t, disk, most/2) // a start above the bound
	table = b.table(t, "t")
	if again := b.Memory().Used; again != used {
		t.Errorf("memory %d after a start, before it %d", again, used)
	}
	if err := b.tryPut(t.Context(), table, sized("1", 1000, 0)); err != nil {
		t.Errorf("an item of the same size: %v", err)
	}
	if err := b.tryPut(t.Context(), table, lease(20001, strings.Repeat("5", 56))); err != nil {
		t.Errorf("a renewal above the bound: %v", err)
	}
	if err := b.tryPut(t.Context(), table, sized("new", 10, 0)); !errors.Is(err, ErrItemsMemory) {
		t.Errorf("a new item: %v", err)
	}
	for i := range 150 {
		_, err := b.Delete(t.Context(), table, id(fmt.Sprint(i)), func(Item) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.tryPut(t.Context(), table, sized("new", 1000, 0)); err != nil {
		t.Errorf("after deletions: %v", err)
	}
	b.close(t)
}

// TestTransactionsAtTheBoundOfMemory fills a store. A transaction that removes more than it adds goes
// on then, in any order of its steps, and one that adds more does not.
func TestTransactionsAtTheBoundOfMemory(t *testing.T) {
	const most = 200 << 10
	b := openBounded(t, vfs.NewMem(), most)
	table, err := b.CreateTable(t.Context(), Meta{
		World: world, Name: "t", Schema: byID,
		Indexes: []Index{{
			Name: "by-v", Schema: Schema{Hash: KeyAttribute{"v", KindNumber}}, Projection: ProjectAll,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; err == nil && n < 1000; n++ {
		err = b.tryPut(t.Context(), table, sized(fmt.Sprint(n), 1000, n))
	}
	if !errors.Is(err, ErrItemsMemory) {
		t.Fatal(err)
	}
	put := func(key string, size int) Step {
		return Step{Table: table, Key: id(key), Decide: func(Item) (Item, error) {
			return sized(key, size, 7), nil
		}}
	}
	remove := func(key string) Step {
		return Step{Table: table, Key: id(key), Delete: true, Decide: func(Item) (Item, error) {
			return nil, nil
		}}
	}
	check := func(key string) Step {
		return Step{Table: table, Key: id(key), Check: true, Decide: func(Item) (Item, error) {
			return nil, nil
		}}
	}
	for _, c := range []struct {
		name  string
		steps []Step
		fits  bool
	}{
		{"put, then delete", []Step{put("a", 900), remove("1")}, true},
		{"delete, then put", []Step{remove("2"), put("b", 900)}, true},
		{"two deletions for a larger one", []Step{remove("3"), put("c", 1500), remove("4")}, true},
		{"a shorter item for a longer one", []Step{put("5", 100), put("6", 1500)}, true},
		{"more than it deletes", []Step{remove("7"), put("d", 3000)}, false},
		{"a check beside it", []Step{check("8"), put("e", 9000)}, false},
	} {
		_, err := b.Transact(t.Context(), c.steps, 20_000, nil)
		if c.fits && err != nil || !c.fits && !errors.Is(err, ErrItemsMemory) {
			t.Errorf("%s: %v, fits %t", c.name, err, c.fits)
		}
		if used := b.Memory().Used; used > most {
			t.Errorf("%s: memory %d of %d", c.name, used, most)
		}
	}
	b.close(t)
}

// TestMemoryIsCounted: after any writes the memory is the sum over what is there, and none is
// reserved.
func TestMemoryIsCounted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		disk := vfs.NewMem()
		b := openBounded(t, disk, 20<<10)
		meta := Meta{World: world, Name: "t", Schema: byID, Indexes: []Index{{
			Name: "by-v", Schema: Schema{Hash: KeyAttribute{"v", KindNumber}}, Projection: ProjectAll,
		}}}
		table, err := b.CreateTable(t.Context(), meta)
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 40).Draw(rt, "writes") {
			key := fmt.Sprint(rapid.IntRange(0, 9).Draw(rt, "key"))
			var next Item
			if rapid.IntRange(0, 4).Draw(rt, "delete") > 0 {
				next = sized(key, rapid.IntRange(0, 2000).Draw(rt, "size"),
					rapid.IntRange(0, 3).Draw(rt, "v"))
				if rapid.Bool().Draw(rt, "sparse") {
					delete(next, "v")
				}
			}
			_, err := b.Update(t.Context(), table, id(key), 0,
				func(Item) (Item, error) { return next, nil })
			if err != nil && !errors.Is(err, ErrItemsMemory) {
				rt.Fatal(err)
			}
			want := int64(0)
			entries, _ := table.from("", 1000)
			for _, e := range entries {
				want += e.weight()
			}
			for _, x := range table.mu.indexes {
				x.tree.Ascend(func(e *indexEntry) bool {
					want += e.weight()
					return true
				})
			}
			if used := b.Memory().Used; used != want || used > 20<<10*17/16 {
				rt.Fatalf("memory %d, want %d", used, want)
			}
		}
		b.close(t)
		used := b.Memory().Used
		b = openBounded(t, disk, 0)
		if again := b.Memory().Used; again != used {
			rt.Fatalf("memory %d after a start, %d before it", again, used)
		}
		_, err = b.DropTable(t.Context(), b.table(t, "t"), func(Stats) error { return nil })
		if used := b.Memory().Used; err != nil || used != 0 {
			rt.Fatalf("memory %d after the last table, %v", used, err)
		}
		b.close(t)
	})
}

// TestWeight compares the memory that the store counts with what items take on the heap.
func TestWeight(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	for _, size := range []int{20, 300, 950} {
		before := heap()
		memory := new(memory)
		table := newTable(1, &Meta{Schema: byID}, memory)
		const items = 20000
		for i := range items {
			item := sized(fmt.Sprint("item-", i), size, i)
			e := newEntry(id(fmt.Sprint("item-", i)).place(), encoded(item), Size(item))
			table.mu.items.ReplaceOrInsert(e)
			table.count(nil, e)
		}
		taken, counted := heap()-before, memory.used.Load()
		t.Logf("an item of %d bytes takes %d, counted as %d", Size(sized("item-1", size, 1)),
			taken/items, counted/items)
		if taken > counted*11/10 || taken < counted*3/4 {
			t.Errorf("%d bytes, counted as %d", taken/items, counted/items)
		}
		runtime.KeepAlive(table)
	}
}
