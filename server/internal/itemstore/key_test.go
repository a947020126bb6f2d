package itemstore

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSegmentsTile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 50).Draw(t, "total")
		key := Key{Hash: String(rapid.String().Draw(t, "hash"))}
		held := 0
		for number := range total {
			if (Segment{number, total}).Holds(key) {
				held++
			}
		}
		if held != 1 {
			t.Fatalf("%v is in %d of %d segments", key, held, total)
		}
	})
}

func TestPlacesOrderSortKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hash := String(rapid.String().Draw(t, "hash"))
		var a, b Value
		switch rapid.SampledFrom([]Kind{KindString, KindNumber, KindBinary}).Draw(t, "kind") {
		case KindString:
			a, b = String(rapid.String().Draw(t, "a")), String(rapid.String().Draw(t, "b"))
		case KindBinary:
			a = Binary(rapid.SliceOf(rapid.Byte()).Draw(t, "a"))
			b = Binary(rapid.SliceOf(rapid.Byte()).Draw(t, "b"))
		default:
			a, b = numbers().Draw(t, "a"), numbers().Draw(t, "b")
		}
		want, _ := Compare(a, b)
		left, right := Key{hash, a}.place(), Key{hash, b}.place()
		if got := compareText(left, right); got != want {
			t.Fatalf("%v and %v: %d, want %d", a, b, got, want)
		}
	})
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestSchemaKey(t *testing.T) {
	simple := Schema{Hash: KeyAttribute{"id", KindString}}
	both := Schema{Hash: KeyAttribute{"id", KindString}, Range: KeyAttribute{"at", KindNumber}}
	for _, test := range []struct {
		schema Schema
		item   Item
		ok     bool
	}{
		{simple, Item{"id": String("a"), "at": NumberOf(1)}, true},
		{simple, Item{"id": NumberOf(1)}, false},
		{simple, Item{"at": NumberOf(1)}, false},
		{both, Item{"id": String("a"), "at": NumberOf(1)}, true},
		{both, Item{"id": String("a")}, false},
		{both, Item{"id": String("a"), "at": String("1")}, false},
	} {
		key, err := test.schema.Key(test.item)
		if (err == nil) != test.ok || (err != nil && !errors.Is(err, ErrKey)) {
			t.Errorf("%v in %v: %v", test.item, test.schema, err)
		}
		if err == nil {
			if again, err := test.schema.Key(test.schema.Item(key)); err != nil || again != key {
				t.Errorf("%v: its own item has the key %v, %v", key, again, err)
			}
		}
	}
}

// TestEqualKeys checks that equal keys are keys of one place.
func TestEqualKeys(t *testing.T) {
	for _, values := range [][]Value{
		{String(""), String("a"), String("b"), String("ab")},
		{Binary(""), Binary("a"), Binary("\x00")},
		{NumberOf(0), NumberOf(1), NumberOf(-1), NumberOf(10)},
	} {
		var keys []Key
		for _, hash := range values {
			keys = append(keys, Key{Hash: hash})
		}
		for _, key := range slices.Clone(keys) {
			for _, value := range values {
				keys = append(keys, Key{key.Hash, value})
			}
		}
		for _, a := range keys {
			for _, b := range keys {
				if (a.Range == nil) == (b.Range == nil) && a.equal(b) != (a.place() == b.place()) {
					t.Errorf("%v and %v: equal is %v", a, b, a.equal(b))
				}
			}
		}
	}
}
