package itemstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

var (
	world  = wire.World{Account: "000000000000", Region: "us-east-1"}
	byID   = Schema{Hash: KeyAttribute{"id", KindString}}
	byIDAt = Schema{Hash: KeyAttribute{"id", KindString}, Range: KeyAttribute{"at", KindNumber}}
	quiet  = slog.New(slog.NewTextHandler(io.Discard, nil))
)

// bench is a store and its log.
type bench struct {
	log *wal.Log
	*Store
}

func open(t testing.TB, fs vfs.FS) bench {
	t.Helper()
	b, err := tryOpen(t.Context(), fs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func tryOpen(ctx context.Context, fs vfs.FS) (bench, error) {
	log, err := wal.Open(wal.Config{FS: fs, Dir: "data", FileSize: 64 << 10, Logger: quiet})
	if err != nil {
		return bench{}, err
	}
	store := New(Config{Log: log})
	if err := log.Start(ctx); err != nil {
		return bench{}, errors.Join(err, log.Close(ctx))
	}
	return bench{log, store}, nil
}

func (b bench) close(t testing.TB) {
	t.Helper()
	if err := b.log.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func (b bench) create(t testing.TB, name string, schema Schema) *Table {
	t.Helper()
	table, err := b.CreateTable(t.Context(), Meta{World: world, Name: name, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func (b bench) table(t testing.TB, name string) *Table {
	t.Helper()
	table, err := b.Table(t.Context(), world, name)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// put writes an item unconditionally.
func (b bench) put(t testing.TB, table *Table, item Item) {
	t.Helper()
	key, err := table.Schema().Key(item)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Update(t.Context(), table, key, 100,
		func(Item) (Item, error) { return item, nil })
	if err != nil {
		t.Fatal(err)
	}
}

func (b bench) get(t testing.TB, table *Table, key Key) Item {
	t.Helper()
	item, err := b.Get(t.Context(), table, key)
	if err != nil {
		t.Fatal(err)
	}
	return item
}

func id(text string) Key { return Key{Hash: String(text)} }

func TestTablesAndItemsSurviveReopening(t *testing.T) {
	fs := vfs.NewMem()
	for _, checkpoint := range []bool{false, true} {
		b := open(t, fs)
		name := fmt.Sprintf("table-%v", checkpoint)
		table := b.create(t, name, byIDAt)
		key := Key{String("a"), NumberOf(7)}
		b.put(t, table, Item{"id": key.Hash, "at": key.Range, "v": String("old")})
		if checkpoint {
			if err := b.log.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		b.put(t, table, Item{"id": key.Hash, "at": key.Range, "v": String("new")})
		b.put(t, table, Item{"id": key.Hash, "at": NumberOf(8)})
		_, err := b.Update(t.Context(), table, Key{key.Hash, NumberOf(8)}, 0,
			func(Item) (Item, error) { return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		b.close(t)

		b = open(t, fs)
		table = b.table(t, name)
		if got := b.get(t, table, key); got["v"] != String("new") {
			t.Errorf("%v", got)
		}
		if got := b.get(t, table, Key{key.Hash, NumberOf(8)}); got != nil {
			t.Errorf("deleted, and there: %v", got)
		}
		stats, err := b.Describe(t.Context(), table)
		want := int64(Size(Item{"id": key.Hash, "at": key.Range, "v": String("new")}))
		if err != nil || stats.Items != 1 || stats.Bytes != want || stats.Meta.Schema != byIDAt {
			t.Errorf("%+v, %v", stats, err)
		}
		b.close(t)
	}
	b := open(t, fs)
	defer b.close(t)
	names, err := b.Names(t.Context(), world)
	if err != nil || !slices.Equal(names, []string{"table-false", "table-true"}) {
		t.Errorf("%q, %v", names, err)
	}
	other, err := b.Names(t.Context(), wire.World{Account: "1"})
	if err != nil || len(other) > 0 {
		t.Errorf("another world: %q, %v", other, err)
	}
}

func TestDroppedTable(t *testing.T) {
	fs := vfs.NewMem()
	b := open(t, fs)
	table := b.create(t, "gone", byID)
	b.put(t, table, Item{"id": String("a")})
	if _, err := b.CreateTable(t.Context(), Meta{World: world, Name: "gone", Schema: byID}); !errors.Is(err, ErrTableExists) {
		t.Errorf("created twice: %v", err)
	}
	refused := errors.New("refused")
	if _, err := b.DropTable(t.Context(), table, func(Stats) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	allow := func(Stats) error { return nil }
	last, err := b.DropTable(t.Context(), table, allow)
	if err != nil || last.Items != 1 {
		t.Errorf("%+v, %v", last, err)
	}
	_, updateErr := b.Update(t.Context(), table, id("a"), 0, func(Item) (Item, error) {
		t.Error("asked for an item of a dropped table")
		return nil, nil
	})
	_, getErr := b.Get(t.Context(), table, id("a"))
	_, scanErr := b.Scan(t.Context(), table, Range{})
	_, describeErr := b.Describe(t.Context(), table)
	_, dropErr := b.DropTable(t.Context(), table, allow)
	_, tableErr := b.Table(t.Context(), world, "gone")
	for i, err := range []error{updateErr, getErr, scanErr, describeErr, dropErr, tableErr} {
		if !errors.Is(err, ErrTableNotFound) {
			t.Errorf("%d: %v", i, err)
		}
	}
	again := b.create(t, "gone", byIDAt)
	if page, err := b.Scan(t.Context(), again, Range{}); err != nil || len(page.Items) > 0 {
		t.Errorf("%v, %v", page, err)
	}
	b.close(t)
	b = open(t, fs)
	defer b.close(t)
	if b.table(t, "gone").Schema() != byIDAt {
		t.Error("the old table is back")
	}
}

func TestUpdate(t *testing.T) {
	b := open(t, vfs.NewMem())
	defer b.close(t)
	table := b.create(t, "table", byID)
	give := func(item Item, err error) func(Item) (Item, error) {
		return func(Item) (Item, error) { return item, err }
	}
	old := Item{"id": String("a"), "v": NumberOf(1)}
	b.put(t, table, old)
	refused := errors.New("refused")
	deep := Value(List{})
	for range MaxDepth {
		deep = List{deep}
	}
	for _, test := range []struct {
		name string
		key  Key
		fn   func(Item) (Item, error)
		err  error
	}{
		{"refused", id("a"), give(nil, refused), refused},
		{"another key", id("a"), give(Item{"id": String("b")}, nil), ErrKey},
		{"no key", id("a"), give(Item{}, nil), ErrKey},
		{"key of another type", Key{Hash: NumberOf(1)}, nil, ErrKey},
		{"too large", id("a"), give(Item{
			"id": String("a"),
			"v":  String(strings.Repeat("x", MaxItemSize)),
		}, nil), ErrItemTooLarge},
		{"too deep", id("a"), give(Item{"id": String("a"), "v": deep}, nil), ErrItemTooDeep},
	} {
		_, err := b.Update(t.Context(), table, test.key, 0, test.fn)
		if !errors.Is(err, test.err) {
			t.Errorf("%s: %v, want %v", test.name, err, test.err)
		}
		if got := b.get(t, table, id("a")); !Equal(got, old) {
			t.Errorf("%s: changed to %v", test.name, got)
		}
	}
	w, err := b.Update(t.Context(), table, id("a"), 0, give(nil, nil))
	if err != nil || !Equal(w.Old(), old) || w.New() != nil || w.OldSize != Size(old) || w.NewSize != 0 {
		t.Errorf("%+v, %v", w, err)
	}
	end := b.log.Durable()
	w, err = b.Update(t.Context(), table, id("a"), 0, give(nil, nil))
	if err != nil || w.Old() != nil || b.log.Durable() != end {
		t.Errorf("deleting nothing: %+v, %v", w, err)
	}
}

func TestNoIncrementIsLost(t *testing.T) {
	b := open(t, vfs.NewMem())
	defer b.close(t)
	table := b.create(t, "table", byID)
	const workers, each = 16, 50
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for range each {
				_, err := b.Update(t.Context(), table, id("counter"), 100,
					func(old Item) (Item, error) {
						count, _ := old["n"].(Number)
						next, err := count.Add(NumberOf(1))
						return Item{"id": String("counter"), "n": next}, err
					})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if got := b.get(t, table, id("counter"))["n"]; got != NumberOf(workers*each) {
		t.Errorf("%v, want %d", got, workers*each)
	}
}

func TestScanPages(t *testing.T) {
	b := open(t, vfs.NewMem())
	defer b.close(t)
	table := b.create(t, "table", byIDAt)
	want := map[string]bool{}
	for hash := range 20 {
		for at := range 5 {
			item := Item{"id": String(fmt.Sprint("h", hash)), "at": NumberOf(int64(at))}
			b.put(t, table, item)
			want[fmt.Sprint(item)] = true
		}
	}
	for _, limits := range []Range{
		{}, {MaxItems: 1}, {MaxItems: 7}, {MaxBytes: 1}, {MaxBytes: 50}, {MaxItems: 100},
	} {
		for _, total := range []int{1, 2, 7, 1000} {
			seen := map[string]bool{}
			for number := range total {
				r := limits
				r.Segment = Segment{number, total}
				scanAll(t, b, table, r, seen)
			}
			if len(seen) != len(want) {
				t.Errorf("%+v, %d segments: %d of %d items", limits, total, len(seen), len(want))
			}
		}
	}
}

func scanAll(t *testing.T, b bench, table *Table, r Range, seen map[string]bool) {
	t.Helper()
	var last Key
	for {
		page, err := b.Scan(t.Context(), table, r)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			key, err := table.Schema().Key(item)
			if err != nil {
				t.Fatal(err)
			}
			if last.Hash != nil && key.place() <= last.place() {
				t.Errorf("%v after %v", key, last)
			}
			if seen[fmt.Sprint(item)] || !r.Segment.Holds(key) {
				t.Errorf("twice, or in the wrong segment: %v", item)
			}
			last = key
			seen[fmt.Sprint(item)] = true
		}
		if r.MaxItems > 0 && len(page.Items) > r.MaxItems {
			t.Errorf("%d items in a page of %d", len(page.Items), r.MaxItems)
		}
		if !page.Full {
			return
		}
		r.After = &page.Last
	}
}

func TestAlterTable(t *testing.T) {
	fs := vfs.NewMem()
	b := open(t, fs)
	table := b.create(t, "table", byID)
	b.put(t, table, Item{"id": String("a")})
	alter := func(stats Stats) (Meta, error) {
		stats.Meta.DeletionProtection = true
		return stats.Meta, nil
	}
	if stats, err := b.AlterTable(t.Context(), table, alter); err != nil || stats.Items != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
	b.close(t)
	b = open(t, fs)
	defer b.close(t)
	stats, err := b.Describe(t.Context(), b.table(t, "table"))
	if err != nil || !stats.Meta.DeletionProtection || stats.Items != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
}
