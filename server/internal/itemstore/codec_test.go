package itemstore

import (
	"bytes"
	"errors"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// values draws values of all kinds, nested up to depth levels.
func values(depth int) *rapid.Generator[Value] {
	text := rapid.StringN(0, 6, -1)
	kinds := []*rapid.Generator[Value]{
		rapid.Map(text, func(s string) Value { return String(s) }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 6), func(b []byte) Value { return Binary(b) }),
		rapid.Map(numbers(), func(n Number) Value { return n }),
		rapid.Map(rapid.Bool(), func(b bool) Value { return Bool(b) }),
		rapid.Just(Value(Null{})),
		rapid.Map(rapid.SliceOfNDistinct(text, 1, 4, rapid.ID), func(s []string) Value {
			set, _ := NewStringSet(s)
			return set
		}),
		rapid.Map(rapid.SliceOfNDistinct(text, 1, 4, rapid.ID), func(s []string) Value {
			set, _ := NewBinarySet(s)
			return set
		}),
		rapid.Map(rapid.SliceOfNDistinct(numbers(), 1, 4, rapid.ID), func(n []Number) Value {
			set, _ := NewNumberSet(n)
			return set
		}),
	}
	if depth > 0 {
		inner := values(depth - 1)
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(inner, 0, 4), func(l []Value) Value { return List(l) }),
			rapid.Map(rapid.MapOfN(text, inner, 0, 4), func(m map[string]Value) Value {
				return Map(m)
			}))
	}
	return rapid.OneOf(kinds...)
}

func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := values(3).Draw(t, "value")
		encoded := appendValue(nil, value)
		d := &decoder{rest: string(encoded)}
		decoded := d.value(0)
		if d.err != nil || len(d.rest) > 0 {
			t.Fatalf("%#v: %v, %d bytes left", value, d.err, len(d.rest))
		}
		if !Equal(value, decoded) || !Equal(decoded, value) {
			t.Fatalf("%#v decodes as %#v", value, decoded)
		}
		if again := appendValue(nil, decoded); !bytes.Equal(again, encoded) {
			t.Fatalf("%#v: not deterministic", value)
		}
		if ValueSize(value) != ValueSize(decoded) {
			t.Fatalf("%#v: another size", value)
		}
	})
}

// encoded returns an item's encoding.
func encoded(item Item) string { return string(appendItem(nil, item)) }

func TestEqualAgreesWithTheEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := values(1).Draw(t, "a"), values(1).Draw(t, "b")
		same := bytes.Equal(appendValue(nil, a), appendValue(nil, b))
		if Equal(a, b) != same {
			t.Fatalf("%#v and %#v: Equal is %v, encodings say %v", a, b, !same, same)
		}
	})
}

func TestSize(t *testing.T) {
	number := func(text string) Number {
		n, err := ParseNumber(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	set, _ := NewStringSet([]string{"ab", "c"})
	for _, test := range []struct {
		value Value
		want  int
	}{
		{String("größe"), 7},
		{Binary("abc"), 3},
		{Bool(true), 1},
		{Null{}, 1},
		{number("0"), 1},
		{number("7"), 2},
		{number("1234"), 3},
		{number("-1234"), 4},
		{number("1000000"), 2}, // trailing zeros are not significant
		{set, 3},
		{List{}, 3},
		{List{String("ab"), Bool(true)}, 3 + 2 + 2 + 1},
		{Map{}, 3},
		{Map{"xy": String("ab")}, 3 + 1 + 2 + 2},
	} {
		if got := ValueSize(test.value); got != test.want {
			t.Errorf("%#v: %d, want %d", test.value, got, test.want)
		}
	}
	if got := Size(Item{"id": String("ab"), "n": number("7")}); got != 2+2+1+2 {
		t.Errorf("item: %d", got)
	}
}

func FuzzDecodeFrame(f *testing.F) {
	frame := newFrame(nil)
	item := Item{"id": String("a"), "l": List{NumberOf(-12), Null{}}}
	frame = appendPut(frame, 1, encoded(item))
	frame = appendDelete(frame, 1, Key{Hash: String("a"), Range: NumberOf(3)})
	frame, err := appendMeta(frame, changeCreate, 2, &Meta{Name: "t"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(appendChange(frame, changeDrop, 2))
	f.Add(appendToken(newFrame(nil), Token{World: world, Text: "token", At: 7}))
	f.Fuzz(func(t *testing.T, payload []byte) {
		again := newFrame(nil)
		err := decodeFrame(payload, func(c change) error {
			switch c.op {
			case changePut:
				again = appendPut(again, c.table, c.body)
			case changeDelete:
				again = appendDelete(again, c.table, c.key)
			case changeDrop:
				again = appendChange(again, c.op, c.table)
			case changeToken:
				if c.table != 0 { // the key is not used then
					again = nil
					return errDone
				}
				again = appendToken(again, c.token)
			default: // JSON may be written in many ways
				again = nil
				return errDone
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, errDone) {
			t.Fatal(err)
		}
		if len(payload) > 0 && again != nil {
			again[0] = payload[0] // the version may be higher than it must
		}
		if err == nil && again != nil && len(payload) > 0 && !bytes.Equal(again, payload) {
			t.Fatalf("%x decodes, and is written as %x", payload, again)
		}
	})
}

var errDone = errors.New("done")

func FuzzRestore(f *testing.F) {
	f.Add([]byte{snapshotVersion, 1, 0})
	s := newStore(Config{})
	meta := &Meta{Name: "t", Schema: Schema{Hash: KeyAttribute{"id", KindString}}}
	if err := s.apply(change{op: changeCreate, table: 1, meta: meta}); err != nil {
		f.Fatal(err)
	}
	item := Item{"id": String("a"), "v": Bool(true)}
	if err := s.apply(change{op: changePut, table: 1, item: item, body: encoded(item)}); err != nil {
		f.Fatal(err)
	}
	snapshot, err := s.Freeze()(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(snapshot)
	young := &Meta{Name: "u", Schema: byID, Indexes: []Index{byNumber}}
	if err := s.apply(change{op: changeCreate, table: 2, meta: young}); err != nil {
		f.Fatal(err)
	}
	if err := s.apply(change{op: changeToken, token: Token{World: world, Text: "t"}}); err != nil {
		f.Fatal(err)
	}
	if snapshot, err = s.Freeze()(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.Add(snapshot)
	s.chain.next, s.chain.left = 7, []spot{{1, "place"}}
	if snapshot, err = s.Freeze()(f.Context()); err != nil || snapshot[0] != snapshotFiles {
		f.Fatal(snapshot, err)
	}
	f.Add(snapshot)
	f.Fuzz(func(t *testing.T, snapshot []byte) {
		s := newStore(Config{})
		if err := s.Restore(snapshot); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again, err := s.Freeze()(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := newStore(Config{}).Restore(again); err != nil {
			t.Fatalf("written by itself: %v", err)
		}
	})
}

func FuzzDataFile(f *testing.F) {
	disk := vfs.NewMem()
	folder := files{disk, "items"}
	table := newStore(Config{})
	err := table.apply(change{op: changeCreate, table: 1, meta: &Meta{Name: "t", Schema: byID}})
	if err != nil {
		f.Fatal(err)
	}
	key := id("a")
	item := Item{"id": key.Hash, "v": NumberOf(1)}
	records := []record{
		{1, newEntry(key.place(), encoded(item), Size(item))},
		{1, newEntry(id("b").place(), "", 0)},
	}
	of, err := folder.write(f.Context(), 1, records, limits{block: 10, sector: 16})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content(f, disk, folder.name(1)), uint16(of.index))
	f.Fuzz(func(t *testing.T, text []byte, index uint16) {
		size, length := int64(len(text)), int64(index)
		if 2*length > size {
			return
		}
		disk := vfs.NewMem()
		if err := disk.MkdirAll("items"); err != nil {
			t.Fatal(err)
		}
		s := newStore(Config{})
		s.mu.byID, s.chain.files = table.mu.byID, files{disk, "items"}
		store(t, disk, s.chain.files.name(1), text)
		of := dataFile{
			1, size, length, crc32.Checksum(text[size-length:], castagnoli),
		}
		d := &decoder{rest: string(text)} // both ways to read a record agree
		want := d.record()
		r, rest, ok := parseRecord(text)
		if d.err == nil && len(want.place) >= 8 && (!ok || *r.entry != *want.entry ||
			r.table != want.table || string(rest) != d.rest) {
			t.Fatalf("%+v, want %+v", r, want)
		}
		_, err := s.verify(of)
		var corrupt *wal.CorruptError
		if err != nil && !errors.As(err, &corrupt) {
			t.Fatal(err)
		}
	})
}
