package itemstore

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// TestModel compares the store with a map, over checkpoints and reopenings.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fs := vfs.NewMem()
		b := open(t, fs)
		tables := map[string]map[string]Item{}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {},
			"create": func(rt *rapid.T) {
				name := tableNames.Draw(rt, "table")
				_, err := b.CreateTable(t.Context(), Meta{World: world, Name: name, Schema: byID})
				if (err == nil) != (tables[name] == nil) {
					rt.Fatalf("create %s: %v", name, err)
				}
				if err == nil {
					tables[name] = map[string]Item{}
				}
			},
			"drop": func(rt *rapid.T) {
				name := tableNames.Draw(rt, "table")
				if tables[name] == nil {
					return
				}
				_, err := b.DropTable(t.Context(), b.table(t, name), func(Stats) error { return nil })
				if err != nil {
					rt.Fatal(err)
				}
				delete(tables, name)
			},
			"update": func(rt *rapid.T) {
				name := tableNames.Draw(rt, "table")
				if tables[name] == nil {
					return
				}
				key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "key")
				var next Item
				if rapid.IntRange(0, 3).Draw(rt, "delete") > 0 {
					next = Item{"id": String(key), "v": values(2).Draw(rt, "value")}
				}
				w, err := b.Update(t.Context(), b.table(t, name), id(key), 0,
					func(Item) (Item, error) { return next, nil })
				if err != nil || !sameItem(w.Old(), tables[name][key]) || !sameItem(w.New(), next) {
					rt.Fatalf("%+v, %v", w, err)
				}
				tables[name][key] = next
			},
			"check": func(rt *rapid.T) { compare(t, rt, b, tables) },
			"checkpoint": func(rt *rapid.T) {
				if err := b.log.Checkpoint(t.Context()); err != nil {
					rt.Fatal(err)
				}
			},
			"reopen": func(rt *rapid.T) {
				b.close(t)
				b = open(t, fs)
				compare(t, rt, b, tables)
			},
		})
		b.close(t)
	})
}

var tableNames = rapid.SampledFrom([]string{"one", "two", "three"})

func sameItem(a, b Item) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return Equal(a, b)
}

func compare(t *testing.T, rt *rapid.T, b bench, tables map[string]map[string]Item) {
	names, err := b.Names(t.Context(), world)
	if err != nil || len(names) != len(tables) {
		rt.Fatalf("tables %q, %v; want %d", names, err, len(tables))
	}
	for name, items := range tables {
		table := b.table(t, name)
		count, bytes := 0, 0
		for key, want := range items {
			if got := b.get(t, table, id(key)); !sameItem(got, want) {
				rt.Fatalf("%s/%s: %v, want %v", name, key, got, want)
			}
			if want != nil {
				count++
				bytes += Size(want)
			}
		}
		stats, err := b.Describe(t.Context(), table)
		if err != nil || stats.Items != int64(count) || stats.Bytes != int64(bytes) {
			rt.Fatalf("%s: %+v, %v; want %d items, %d bytes", name, stats, err, count, bytes)
		}
		page, err := b.Scan(t.Context(), table, Range{})
		if err != nil || len(page.Items) != count || page.Bytes != bytes {
			rt.Fatalf("%s: %s, %v; want %d items", name, fmt.Sprint(page), err, count)
		}
	}
}
