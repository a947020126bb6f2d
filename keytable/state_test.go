package keytable

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// drawChanges draws a change that fits the state.
func drawChange(t *rapid.T, s *state) []change {
	name := fmt.Sprint("n", rapid.IntRange(0, 2).Draw(t, "name"))
	e := s.names[name]
	free := func() string {
		key, err := s.allocator.Allocate()
		if err != nil {
			return ""
		}
		_ = s.allocator.Release(key)
		return key.String()
	}()
	switch op := rapid.SampledFrom([]string{opAssign, opRelease, opMoving, opMoved, opAbort}).Draw(t, "op"); {
	case op == opAssign && e == nil && free != "", op == opMoving && e != nil && e.To == nil && free != "":
		return []change{{Op: op, Name: name, Key: free, Rate: 1}}
	case op == opRelease && e != nil && e.To == nil, (op == opMoved || op == opAbort) && e != nil && e.To != nil:
		return []change{{Op: op, Name: name}}
	}
	return nil
}

func rowsOf(s *state) map[string]row {
	rows := map[string]row{}
	for name, e := range s.names {
		r := e.row
		if r.To != nil {
			r.Rate += r.To.Lo<<32 + 1<<63 // pointers do not compare
			r.To = nil
		}
		rows[name] = r
	}
	return rows
}

// Rows that are read at any time while a log grows, each at another one, come to the same as the
// log, with the log from before they were read on applied over them: that is rescan.
func TestRescanIsTheLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		space, _ := allocate.NewSpace(keyspace.Key{Lo: 16})
		s := newState(space, 0)
		log := map[int64][]change{}
		var history []map[string]*row // by version
		keep := func() {
			rows := map[string]*row{}
			for name := range s.names {
				rows[name] = s.row(name)
			}
			history = append(history, rows)
		}
		keep()
		for range rapid.IntRange(0, 60).Draw(t, "changes") {
			changes := drawChange(t, s)
			if changes == nil {
				continue
			}
			if err := s.apply(s.version+1, changes); err != nil {
				t.Fatal(err)
			}
			log[s.version] = changes
			keep()
			held := 0
			for _, e := range s.names {
				held += len(e.keys())
			}
			if held != s.allocator.Len() {
				t.Fatalf("%d keys are held, the allocator has %d", held, s.allocator.Len())
			}
		}
		from := rapid.Int64Range(0, s.version).Draw(t, "from")
		rows := map[string]*row{}
		for i := range 3 {
			name := fmt.Sprint("n", i)
			if r := history[rapid.Int64Range(from, s.version).Draw(t, "seen")][name]; r != nil {
				rows[name] = r
			}
		}
		for v := from + 1; v <= s.version; v++ {
			for _, c := range log[v] {
				if rows[c.Name] = c.apply(rows[c.Name], v); rows[c.Name] == nil {
					delete(rows, c.Name)
				}
			}
		}
		scanned := newState(space, s.version)
		for name, r := range rows {
			if err := scanned.set(name, r); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := rowsOf(scanned), rowsOf(s); !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(scanned.moving)), slices.Sorted(maps.Keys(s.moving))) {
			t.Fatalf("moving: got %v, want %v", scanned.moving, s.moving)
		}
	})
}

// TestChangeOnce: a change at a version that the row already includes has no effect. Here the
// change ends an earlier move. Applied again, it would end the later move too early.
func TestChangeOnce(t *testing.T) {
	to := keyspace.Key{Lo: 9}
	r := &row{Key: keyspace.Key{Lo: 7}, To: &to, Since: 4}
	if after := (change{Op: opMoved, Name: "a"}).apply(r, 3); after != r {
		t.Errorf("got %+v", after)
	}
}

// Rows and changes come back as they were written.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Custom(func(t *rapid.T) keyspace.Key {
			return keyspace.Key{Hi: rapid.Uint64().Draw(t, "hi"), Lo: rapid.Uint64().Draw(t, "lo")}
		})
		name := rapid.StringN(1, 256, -1).Draw(t, "name")
		r := &row{Key: key.Draw(t, "key"), Rate: rapid.Uint64().Draw(t, "rate"), Since: rapid.Int64().Draw(t, "since")}
		if rapid.Bool().Draw(t, "moving") {
			to := key.Draw(t, "to")
			r.To = &to
		}
		gotName, got, named, err := decodeRow(encodeRow(name, r))
		if err != nil || !named || gotName != name || got.Key != r.Key || got.Rate != r.Rate ||
			got.Since != r.Since || (got.To == nil) != (r.To == nil) || r.To != nil && *got.To != *r.To {
			t.Fatalf("%q %+v, %v; want %q %+v", gotName, got, err, name, r)
		}
		changes := []change{
			{Op: opAssign, Name: name, Key: r.Key.String(), Rate: r.Rate}, {Op: opAbort, Name: name},
		}
		text, err := encodeChanges(changes)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeChanges(text); err != nil || !slices.Equal(back, changes) {
			t.Fatalf("%v, %v", back, err)
		}
	})
}

// The rows of another program are refused with the reason.
func TestDamaged(t *testing.T) {
	for _, text := range []string{
		``, `{}`, `[{"op":"assign","name":"a","key":"x"}]`, `[{"op":"assign","name":"a"}]`,
		`[{"op":"moving","name":"a"}]`, `[{"op":"steal","name":"a"}]`, `[{"op":"release","name":""}]`,
	} {
		if _, err := decodeChanges(text); !errors.Is(err, ErrDamagedTable) {
			t.Errorf("%s: %v", text, err)
		}
	}
	good := func() item { return encodeRow("a", &row{Key: keyspace.Key{Lo: 7}, Rate: 1, Since: 3}) }
	for _, spoil := range []func(item){
		func(i item) { i[attrKey] = str("x") }, func(i item) { delete(i, attrRate) },
		func(i item) { i[attrRate] = &types.AttributeValueMemberN{Value: "1.5"} },
		func(i item) { delete(i, attrSince) }, func(i item) { i[attrSince] = &types.AttributeValueMemberN{Value: "1e400"} },
		func(i item) { i[attrTo] = str("") }, func(i item) { i[attrID] = str(idKey) },
		func(i item) { i[attrID] = str(idKey + strings.Repeat("é", 257)) },
	} {
		i := good()
		spoil(i)
		if _, _, named, err := decodeRow(i); !named || !errors.Is(err, ErrDamagedTable) {
			t.Errorf("%v: %v, %v", i, named, err)
		}
	}
	if _, _, named, err := decodeRow(primary(idHead, 0)); named || err != nil {
		t.Errorf("the head: %v, %v", named, err)
	}
	s := newState(allocate.Space{}, 0)
	if err := s.set("a", &row{}); err != nil {
		t.Fatal(err)
	}
	if err := s.set("b", &row{}); !errors.Is(err, ErrDamagedTable) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("a key twice: %v", err)
	}
}

// No text of a log row can do worse than be refused.
func FuzzDecodeChanges(f *testing.F) {
	f.Add(`[{"op":"assign","name":"a","key":"7","rate":1},{"op":"moving","name":"a","key":"9"}]`)
	f.Fuzz(func(t *testing.T, text string) {
		changes, err := decodeChanges(text)
		if err != nil {
			return
		}
		s := newState(allocate.Space{}, 0)
		for v, c := range changes {
			if s.apply(int64(v+1), []change{c}) != nil {
				return
			}
		}
		again, err := encodeChanges(changes)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeChanges(again); err != nil || !slices.Equal(back, changes) {
			t.Fatalf("%v, %v", back, err)
		}
	})
}

// No item of a name can either.
func FuzzDecodeRow(f *testing.F) {
	f.Add("key/a", "7", "1", "3", "9", true)
	f.Fuzz(func(t *testing.T, id, key, rate, since, to string, moving bool) {
		i := item{
			attrID: str(id), attrKey: str(key), attrRate: &types.AttributeValueMemberN{Value: rate},
			attrSince: &types.AttributeValueMemberN{Value: since},
		}
		if moving {
			i[attrTo] = str(to)
		}
		name, r, named, err := decodeRow(i)
		if !named || err != nil {
			return
		}
		again, back, _, err := decodeRow(encodeRow(name, r))
		if err != nil || again != name || back.Key != r.Key || back.Since != r.Since {
			t.Fatalf("%q %+v, %v", again, back, err)
		}
	})
}
