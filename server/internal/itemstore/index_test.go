package itemstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/vfs"
)

var (
	byOwner = Index{
		Name: "byOwner", Projection: ProjectKeys,
		Schema: Schema{Hash: KeyAttribute{"owner", KindString}, Range: KeyAttribute{"id", KindString}},
	}
	byRank = Index{
		Name: "byRank", Projection: ProjectSome, Include: []string{"note"},
		Schema: Schema{Hash: KeyAttribute{"owner", KindString}, Range: KeyAttribute{"rank", KindNumber}},
	}
	byNote = Index{
		Name: "byNote", Projection: ProjectAll,
		Schema: Schema{Hash: KeyAttribute{"note", KindBinary}},
	}
)

// indexed is a table of the model: its description and its items.
type indexed struct {
	t       *testing.T
	fs      vfs.FS
	b       bench
	table   *Table
	items   map[string]Item // by fmt of the key
	indexes []Index
}

func (m *indexed) key(rt *rapid.T) Key {
	return Key{
		String(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "id")),
		NumberOf(int64(rapid.IntRange(-2, 2).Draw(rt, "at"))),
	}
}

// item draws an item of the key; some of its attributes fit no index.
func (m *indexed) item(rt *rapid.T, key Key) Item {
	item := byIDAt.Item(key)
	attribute := func(name string, values ...Value) {
		if value := rapid.SampledFrom(values).Draw(rt, name); value != nil {
			item[name] = value
		}
	}
	attribute("owner", nil, String("x"), String("y"), String("xy"))
	attribute("rank", nil, NumberOf(-3), NumberOf(7), NumberOf(70))
	attribute("note", nil, Binary("n"), Binary("\xff"), Binary("\xff\xff"))
	attribute("more", nil, Bool(true), List{NumberOf(1)})
	return item
}

func (m *indexed) put(rt *rapid.T, key Key, next Item) {
	w, err := m.b.Update(m.t.Context(), m.table, key, 0,
		func(Item) (Item, error) { return next, nil })
	if err != nil {
		rt.Fatal(err)
	}
	old := m.items[fmt.Sprint(key)]
	m.checkChanges(rt, w, old, next)
	m.set(key, next)
}

func (m *indexed) set(key Key, next Item) {
	m.items[fmt.Sprint(key)] = next
	if next == nil {
		delete(m.items, fmt.Sprint(key))
	}
}

// expected returns the projection of an item, computed the slow way; nil for none.
func expected(index Index, item Item) Item {
	shown := Item{}
	for name, value := range item {
		if index.Projection == ProjectAll || byIDAt.Has(name) || index.Schema.Has(name) ||
			slices.Contains(index.Include, name) {
			shown[name] = value
		}
	}
	if _, err := index.Schema.Key(item); err != nil {
		return nil
	}
	return shown
}

func (m *indexed) checkChanges(rt *rapid.T, w Written, old, next Item) {
	rt.Helper()
	at := 0
	for _, index := range m.indexes {
		before, after := expected(index, old), expected(index, next)
		if sameItem(before, after) {
			continue
		}
		if at >= len(w.Indexes) || w.Indexes[at].Index != index.Name ||
			w.Indexes[at].OldSize != Size(before) || w.Indexes[at].NewSize != Size(after) {
			rt.Fatalf("%s: from %v to %v: %+v", index.Name, before, after, w.Indexes)
		}
		at++
	}
	if at != len(w.Indexes) {
		rt.Fatalf("changed too much: %+v", w.Indexes)
	}
}

// TestIndexes compares indexes with their items, over writes, transactions, added and removed
// indexes, checkpoints and reopenings.
func TestIndexes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &indexed{
			t: t, fs: vfs.NewMem(), items: map[string]Item{}, indexes: []Index{byOwner},
		}
		m.b = open(t, m.fs)
		var err error
		m.table, err = m.b.CreateTable(t.Context(), Meta{
			World: world, Name: "table", Schema: byIDAt, Indexes: m.indexes,
		})
		if err != nil {
			rt.Fatal(err)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {},
			"put": func(rt *rapid.T) {
				key := m.key(rt)
				m.put(rt, key, m.item(rt, key))
			},
			"delete":   func(rt *rapid.T) { m.put(rt, m.key(rt), nil) },
			"transact": m.transact,
			"alter":    m.alter,
			"check":    m.check,
			"range":    m.ranges,
			"checkpoint": func(rt *rapid.T) {
				if err := m.b.log.Checkpoint(t.Context()); err != nil {
					rt.Fatal(err)
				}
			},
			"reopen": func(rt *rapid.T) {
				m.b.close(t)
				m.b = open(t, m.fs)
				m.table = m.b.table(t, "table")
				m.check(rt)
			},
		})
		m.check(rt)
		m.b.close(t)
	})
}

func (m *indexed) transact(rt *rapid.T) {
	var steps []Step
	next := map[string]Item{}
	keys := map[string]Key{}
	for range rapid.IntRange(1, 4).Draw(rt, "steps") {
		key := m.key(rt)
		if _, twice := keys[fmt.Sprint(key)]; twice {
			continue
		}
		step := Step{Table: m.table, Key: key}
		item := m.item(rt, key)
		switch rapid.IntRange(0, 3).Draw(rt, "verb") {
		case 0:
			item = nil
		case 1:
			step.Check, item = true, m.items[fmt.Sprint(key)]
		}
		step.Decide = func(Item) (Item, error) { return item, nil }
		keys[fmt.Sprint(key)], next[fmt.Sprint(key)] = key, item
		steps = append(steps, step)
	}
	refused := errors.New("refused")
	if rapid.IntRange(0, 3).Draw(rt, "refuse") == 0 {
		steps[len(steps)-1].Decide = func(Item) (Item, error) { return nil, refused }
	}
	outcome, err := m.b.Transact(m.t.Context(), steps, 0, nil)
	if errors.Is(err, ErrCancelled) {
		if !errors.Is(outcome.Errs[len(steps)-1], refused) {
			rt.Fatalf("%v", outcome.Errs)
		}
		return
	}
	if err != nil {
		rt.Fatal(err)
	}
	for i, step := range steps {
		name := fmt.Sprint(step.Key)
		if w := outcome.Written[i]; !sameItem(w.Old(), m.items[name]) || !sameItem(w.New(), next[name]) {
			rt.Fatalf("%+v", w)
		}
		m.checkChanges(rt, outcome.Written[i], m.items[name], next[name])
		m.set(step.Key, next[name])
	}
}

func (m *indexed) alter(rt *rapid.T) {
	index := rapid.SampledFrom([]Index{byOwner, byRank, byNote}).Draw(rt, "index")
	_, err := m.b.AlterTable(m.t.Context(), m.table, func(now Stats) (Meta, error) {
		meta := now.Meta
		meta.Indexes = slices.Clone(meta.Indexes)
		at := slices.IndexFunc(meta.Indexes, func(x Index) bool { return x.Name == index.Name })
		if at < 0 {
			meta.Indexes = append(meta.Indexes, index)
		} else {
			meta.Indexes = slices.Delete(meta.Indexes, at, at+1)
		}
		m.indexes = meta.Indexes
		return meta, nil
	})
	if err != nil {
		rt.Fatal(err)
	}
}

// sorted returns the expected content of an index (or of the table, without a name) in order.
func (m *indexed) sorted(index Index) []Item {
	var items []Item
	for _, item := range m.items {
		if index.Name == "" {
			items = append(items, item)
		} else if shown := expected(index, item); shown != nil {
			items = append(items, shown)
		}
	}
	schema := index.Schema
	if index.Name == "" {
		schema = byIDAt
	}
	place := func(item Item) string {
		key, _ := schema.Key(item)
		of, _ := byIDAt.Key(item)
		return key.place() + "\x00\x00\x00" + of.place()
	}
	slices.SortFunc(items, func(a, b Item) int {
		aKey, _ := schema.Key(a)
		bKey, _ := schema.Key(b)
		if order := strings.Compare(aKey.place(), bKey.place()); order != 0 {
			return order
		}
		return strings.Compare(place(a), place(b))
	})
	return items
}

func (m *indexed) check(rt *rapid.T) {
	stats, err := m.b.Describe(m.t.Context(), m.table)
	if err != nil || len(stats.Indexes) != len(m.indexes) || stats.Items != int64(len(m.items)) {
		rt.Fatalf("%+v, %v", stats, err)
	}
	for i, index := range m.indexes {
		want := m.sorted(index)
		m.compare(rt, Range{Index: index.Name}, index, want)
		bytes := 0
		for _, item := range want {
			bytes += Size(item)
		}
		if stats.Indexes[i] != (IndexStats{int64(len(want)), int64(bytes)}) {
			rt.Fatalf("%s: %+v, want %d items, %d bytes", index.Name, stats.Indexes[i], len(want), bytes)
		}
	}
}

// compare reads a range to its end, in pages.
func (m *indexed) compare(rt *rapid.T, r Range, index Index, want []Item) {
	rt.Helper()
	var got []Item
	for {
		page, err := m.b.Scan(m.t.Context(), m.table, r)
		if err != nil {
			rt.Fatal(err)
		}
		got = append(got, page.Items...)
		if !page.Full {
			break
		}
		r.After = &page.Last
		if r.Index != "" {
			in, err := index.Schema.Key(page.Items[len(page.Items)-1])
			if err != nil {
				rt.Fatal(err)
			}
			r.AfterIn = &in
		}
	}
	if !slices.EqualFunc(got, want, sameItem) {
		rt.Fatalf("%+v: %v\nwant %v", r, got, want)
	}
}

// ranges reads a random range, and compares it with a filter of everything.
func (m *indexed) ranges(rt *rapid.T) {
	index := Index{Schema: byIDAt}
	if len(m.indexes) > 0 && rapid.Bool().Draw(rt, "an index") {
		index = rapid.SampledFrom(m.indexes).Draw(rt, "index")
	}
	r := Range{
		Index: index.Name, MaxItems: rapid.IntRange(0, 3).Draw(rt, "limit"),
		Backward: rapid.Bool().Draw(rt, "backward"),
	}
	sort := func(name string, kind Kind) Value {
		switch kind {
		case KindNumber:
			return NumberOf(int64(rapid.SampledFrom([]int{-3, -2, 0, 1, 7, 8, 70}).Draw(rt, name)))
		case KindString:
			return String(rapid.SampledFrom([]string{"", "a", "aa", "b", "c"}).Draw(rt, name))
		}
		return nil
	}
	if rapid.Bool().Draw(rt, "one hash") {
		switch index.Schema.Hash {
		case byIDAt.Hash:
			r.Hash = String(rapid.SampledFrom([]string{"a", "b", "z"}).Draw(rt, "hash"))
		case byNote.Schema.Hash:
			r.Hash = Binary(rapid.SampledFrom([]string{"n", "\xff", "\xff\xff"}).Draw(rt, "hash"))
		default:
			r.Hash = String(rapid.SampledFrom([]string{"x", "y", "xy"}).Draw(rt, "hash"))
		}
		if kind := index.Schema.Range.Kind; kind != "" {
			switch rapid.IntRange(0, 4).Draw(rt, "sort") {
			case 1:
				r.Sort.Low = sort("low", kind)
				r.Sort.LowOpen = rapid.Bool().Draw(rt, "open")
			case 2:
				r.Sort.High = sort("high", kind)
				r.Sort.HighOpen = rapid.Bool().Draw(rt, "open")
			case 3:
				r.Sort.Low, r.Sort.High = sort("low", kind), sort("high", kind)
			case 4:
				if kind == KindString {
					r.Sort.Prefix = sort("prefix", kind)
				}
			}
		}
	}
	var want []Item
	for _, item := range m.sorted(index) {
		if r.Hash == nil || Equal(item[index.Schema.Hash.Name], r.Hash) &&
			r.Sort.holds(item[index.Schema.Range.Name]) {
			want = append(want, item)
		}
	}
	if r.Backward {
		slices.Reverse(want)
	}
	m.compare(rt, r, index, want)
}

// holds says the slow way whether a sort key is in the range.
func (s *Sort) holds(value Value) bool {
	within := func(bound Value, sign int, open bool) bool {
		if bound == nil {
			return true
		}
		order, ok := Compare(value, bound)
		return ok && (order*sign > 0 || order == 0 && !open)
	}
	prefix, _ := s.Prefix.(String)
	text, _ := value.(String)
	return within(s.Low, 1, s.LowOpen) && within(s.High, -1, s.HighOpen) &&
		strings.HasPrefix(string(text), string(prefix))
}

func TestIndexKeys(t *testing.T) {
	b := open(t, vfs.NewMem())
	defer b.close(t)
	table, err := b.CreateTable(t.Context(), Meta{
		World: world, Name: "table", Schema: byID, Indexes: []Index{byRank},
	})
	if err != nil {
		t.Fatal(err)
	}
	write := func(item Item) error {
		_, err := b.Update(t.Context(), table, id("a"), 0,
			func(Item) (Item, error) { return item, nil })
		return err
	}
	for name, value := range map[string]Value{
		"of another type": NumberOf(1), "empty": String(""),
		"too long": String(strings.Repeat("x", MaxHashKey+1)), "a list": List{},
	} {
		var wrong *IndexKeyError
		err := write(Item{"id": String("a"), "owner": value})
		if !errors.As(err, &wrong) || wrong.Index != "byRank" || wrong.Attribute.Name != "owner" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := write(Item{"id": String("a"), "owner": String("x"), "note": Binary("")}); err != nil {
		t.Error(err)
	}
	// An item that is older than an index is left out of it, and can still be written.
	alter := func(indexes ...Index) {
		t.Helper()
		_, err := b.AlterTable(t.Context(), table, func(now Stats) (Meta, error) {
			now.Meta.Indexes = indexes
			return now.Meta, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	alter(byRank, byNote)
	if err := write(Item{"id": String("a"), "note": Binary("")}); err != nil {
		t.Error(err)
	}
	if page, err := b.Scan(t.Context(), table, Range{Index: "byNote"}); err != nil || len(page.Items) > 0 {
		t.Errorf("%v, %v", page, err)
	}
	alter(byRank)
	_, scanErr := b.Scan(t.Context(), table, Range{Index: "byNote"})
	_, indexErr := b.Index(t.Context(), table, "byNote")
	if !errors.Is(scanErr, ErrIndexNotFound) || !errors.Is(indexErr, ErrIndexNotFound) {
		t.Errorf("%v, %v", scanErr, indexErr)
	}
	if index, err := b.Index(t.Context(), table, "byRank"); err != nil || index.Schema != byRank.Schema {
		t.Errorf("%v, %v", index, err)
	}
	for name, r := range map[string]Range{
		"hash of another type":       {Hash: NumberOf(1)},
		"sort key that is not there": {Hash: String("a"), Sort: Sort{Low: NumberOf(1)}},
		"prefix of a number":         {Index: "byRank", Hash: String("x"), Sort: Sort{Prefix: NumberOf(1)}},
		"no key in the index":        {Index: "byRank", After: &Key{Hash: String("a")}},
		"bad key in the index": {
			Index: "byRank", After: &Key{Hash: String("a")}, AfterIn: &Key{Hash: String("a")},
		},
	} {
		if _, err := b.Scan(t.Context(), table, r); !errors.Is(err, ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestIndexSurvivesACrash makes an index and loses the power, so that it comes from the log.
func TestIndexSurvivesACrash(t *testing.T) {
	fs := vfs.NewCrashable()
	b := open(t, fs)
	table := b.create(t, "table", byID)
	b.put(t, table, Item{"id": String("a"), "owner": String("x")})
	_, err := b.AlterTable(t.Context(), table, func(now Stats) (Meta, error) {
		now.Meta.Indexes = []Index{byOwner}
		return now.Meta, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.put(t, table, Item{"id": String("b"), "owner": String("x")})
	after := fs.Crash(rand.New(rand.NewPCG(1, 2)))
	b.close(t)
	b = open(t, after)
	defer b.close(t)
	page, err := b.Scan(t.Context(), b.table(t, "table"), Range{Index: byOwner.Name})
	if err != nil || len(page.Items) != 2 {
		t.Errorf("%v, %v", page.Items, err)
	}
}

// TestBinarySortKeys has the bytes of which there is none above.
func TestBinarySortKeys(t *testing.T) {
	b := open(t, vfs.NewMem())
	defer b.close(t)
	table := b.create(t, "table", Schema{
		Hash: KeyAttribute{"id", KindBinary}, Range: KeyAttribute{"at", KindBinary},
	})
	keys := []string{"\x00", "a", "a\x00", "a\xff", "a\xff\xff\x00", "b", "\xfe", "\xff", "\xff\xff"}
	for _, hash := range []string{"h", "h\xff"} {
		for _, key := range keys {
			b.put(t, table, Item{"id": Binary(hash), "at": Binary(key)})
		}
	}
	for name, test := range map[string]struct {
		sort Sort
		want []string
	}{
		"all":           {Sort{}, keys},
		"begins with a": {Sort{Prefix: Binary("a")}, keys[1:5]},
		"begins with ff": {
			Sort{Prefix: Binary("\xff")}, keys[7:],
		},
		"above a":     {Sort{Low: Binary("a"), LowOpen: true}, keys[2:]},
		"from a to b": {Sort{Low: Binary("a"), High: Binary("b")}, keys[1:6]},
		"below b":     {Sort{High: Binary("b"), HighOpen: true}, keys[:5]},
		"backwards":   {Sort{Low: Binary("b"), High: Binary("a")}, nil},
	} {
		page, err := b.Scan(t.Context(), table, Range{Hash: Binary("h"), Sort: test.sort})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, item := range page.Items {
			got = append(got, string(item["at"].(Binary)))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestIndexSegments tiles an index by the hashes of its own partition keys.
func TestIndexSegments(t *testing.T) {
	b := open(t, vfs.NewMem())
	defer b.close(t)
	table, err := b.CreateTable(t.Context(), Meta{
		World: world, Name: "table", Schema: byID, Indexes: []Index{byOwner},
	})
	if err != nil {
		t.Fatal(err)
	}
	const items = 60
	for i := range items {
		b.put(t, table, Item{
			"id": String(fmt.Sprint("i", i)), "owner": String(fmt.Sprint("o", i%20)),
		})
	}
	for _, total := range []int{1, 3, 50} {
		seen := map[Value]int{}
		for number := range total {
			r := Range{Index: "byOwner", Segment: Segment{number, total}}
			page, err := b.Scan(t.Context(), table, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range page.Items {
				seen[item["id"]]++
				if !r.Segment.Holds(Key{item["owner"], item["id"]}) {
					t.Errorf("%v is in another segment", item)
				}
			}
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("%v is there %d times", id, n)
			}
		}
		if len(seen) != items {
			t.Errorf("%d segments: %d items", total, len(seen))
		}
	}
}
