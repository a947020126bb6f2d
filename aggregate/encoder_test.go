package aggregate_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// Aggregates written by hand, byte for byte, from the format's description: tables first, each
// string once, then the records with their fields in the order of their numbers.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name    string
		records []aggregate.Record
		message string
	}{
		{
			"one record",
			[]aggregate.Record{{PartitionKey: "k", Data: []byte("x")}},
			"\x0a\x01k" + "\x1a\x05\x08\x00\x1a\x01x",
		},
		{
			"two records of one key",
			[]aggregate.Record{{PartitionKey: "k", Data: []byte("x")}, {PartitionKey: "k"}},
			"\x0a\x01k" + "\x1a\x05\x08\x00\x1a\x01x" + "\x1a\x04\x08\x00\x1a\x00",
		},
		{
			"keys and hash keys",
			[]aggregate.Record{
				{PartitionKey: "a", Data: []byte("1")},
				{PartitionKey: "b", ExplicitHashKey: "7", Data: []byte("2")},
				{PartitionKey: "a", ExplicitHashKey: "10", Data: []byte("3")},
				{PartitionKey: "b", ExplicitHashKey: "7", Data: []byte("4")},
			},
			"\x0a\x01a\x0a\x01b" + "\x12\x017\x12\x0210" +
				"\x1a\x05\x08\x00\x1a\x011" + "\x1a\x07\x08\x01\x10\x00\x1a\x012" +
				"\x1a\x07\x08\x00\x10\x01\x1a\x013" + "\x1a\x07\x08\x01\x10\x00\x1a\x014",
		},
		{
			"a unit",
			[]aggregate.Record{{
				PartitionKey: "k", Data: []byte("x"),
				Tags: aggregate.Unit{
					Producer: aggregate.ProducerID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
					Number:   17, Low: 12,
				}.AppendTo(nil),
			}},
			"\x0a\x01k" + "\x1a\x2a\x08\x00\x1a\x01x" +
				"\x22\x23\x0a\x03rnl\x12\x1cAAECAwQFBgcICQoLDA0ODw.17.12",
		},
		{"nothing", nil, ""},
	} {
		var e aggregate.Encoder
		add(t, &e, c.records...)
		got, want := e.Seal([]byte("before")), append([]byte("before"), wrap(c.message)...)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: got\n%s, want\n%s", c.name, hex.Dump(got), hex.Dump(want))
		}
		if e.Size() != len(got)-len("before") || e.Len() != len(c.records) {
			t.Errorf("%s: size %d of %d, %d records", c.name, e.Size(), len(got), e.Len())
		}
	}
}

// Overhead is 20 bytes in the KPL, kFixedOverhead.
func TestOverhead(t *testing.T) {
	if aggregate.Overhead != 20 {
		t.Errorf("overhead %d", aggregate.Overhead)
	}
}

func records() *rapid.Generator[aggregate.Record] {
	return rapid.Custom(func(t *rapid.T) aggregate.Record {
		r := aggregate.Record{
			PartitionKey: rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.StringN(1, 200, 256)).Draw(t, "key"),
			Data:         rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data"),
		}
		if rapid.Bool().Draw(t, "explicit") {
			r.ExplicitHashKey = keyspace.Key{
				Hi: rapid.Uint64Range(0, 3).Draw(t, "hi"), Lo: rapid.Uint64Range(0, 3).Draw(t, "lo"),
			}.String()
		}
		for range rapid.IntRange(0, 2).Draw(t, "tags") {
			r.Tags = r.Tags.Append(rapid.String().Draw(t, "tag"), rapid.StringN(0, 150, 200).Draw(t, "value"))
		}
		return r
	})
}

// Decode returns the records of Add; SizeWith is exact; a used encoder gives the same bytes as a
// new one.
func TestRoundTrip(t *testing.T) {
	var used aggregate.Encoder
	var sizer aggregate.Sizer
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(records(), 0, 150).Draw(t, "records")
		var fresh aggregate.Encoder
		used.Reset()
		sizer.Reset()
		for i, r := range list {
			size := used.SizeWith(r)
			if i == 0 && size != aggregate.SizeOf(r) {
				t.Fatalf("SizeOf is %d, SizeWith %d", aggregate.SizeOf(r), size)
			}
			if err := used.Add(r); err != nil {
				t.Fatal(err)
			}
			with := sizer.SizeWith(r)
			if sizer.Add(r); used.Size() != size || with != size || sizer.Size() != size {
				t.Fatalf("record %d: size %d, SizeWith %d; the sizer %d and %d", i, used.Size(), size,
					sizer.Size(), with)
			}
			if err := fresh.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		data := used.Seal(nil)
		if len(data) != used.Size() || !bytes.Equal(data, fresh.Seal(nil)) {
			t.Fatal("another size, or other bytes in a used encoder")
		}
		got, ok := aggregate.Decode(nil, data)
		if len(list) == 0 {
			return
		}
		if !ok || len(got) != len(list) {
			t.Fatalf("%d records of %d, %v", len(got), len(list), ok)
		}
		for i := range list {
			want := list[i]
			if got[i].PartitionKey != want.PartitionKey || got[i].ExplicitHashKey != want.ExplicitHashKey ||
				!bytes.Equal(got[i].Data, want.Data) || !bytes.Equal(got[i].Tags, want.Tags) {
				t.Fatalf("record %d: got %v, want %v", i, got[i], want)
			}
		}
	})
}

// Sizes where a varint grows by a byte: of the index, the data, the entry and the key.
func TestSizesAtTheEdges(t *testing.T) {
	for _, n := range []int{0, 1, 120, 121, 122, 123, 124, 125, 126, 127, 128, 16370, 16376, 16380, 16383, 16384, 16385} {
		r := aggregate.Record{PartitionKey: strings.Repeat("k", max(1, n%300)), Data: make([]byte, n)}
		var e aggregate.Encoder
		add(t, &e, r)
		if got := len(e.Seal(nil)); got != aggregate.SizeOf(r) || got != e.Size() {
			t.Errorf("data of %d: %d bytes, SizeOf %d, Size %d", n, got, aggregate.SizeOf(r), e.Size())
		}
	}
	var e aggregate.Encoder
	for i := range 300 { // indices of two bytes
		r := aggregate.Record{PartitionKey: fmt.Sprint(i), ExplicitHashKey: fmt.Sprint(i)}
		want := e.SizeWith(r)
		add(t, &e, r)
		if got := len(e.Seal(nil)); got != want || got != e.Size() {
			t.Fatalf("record %d: %d bytes, SizeWith %d, Size %d", i, got, want, e.Size())
		}
	}
}

// Add refuses a record that could not be read back, and leaves the encoder unchanged.
func TestAddRefuses(t *testing.T) {
	nested := wrap("\x0a\x01k")
	for _, c := range []struct {
		name   string
		record aggregate.Record
		want   error
	}{
		{"an aggregate", aggregate.Record{PartitionKey: "k", Data: nested}, aggregate.ErrNestedAggregate},
		{"no key", aggregate.Record{}, aggregate.ErrInvalidPartitionKey},
		{"a key that is not UTF-8", aggregate.Record{PartitionKey: "\xff"}, aggregate.ErrInvalidPartitionKey},
		{"a hash key that is no number", aggregate.Record{PartitionKey: "new", ExplicitHashKey: "x"}, keyspace.ErrKeySyntax},
		{"a hash key with a zero", aggregate.Record{PartitionKey: "new", ExplicitHashKey: "01"}, keyspace.ErrKeySyntax},
	} {
		var e aggregate.Encoder
		add(t, &e, aggregate.Record{PartitionKey: "k", Data: []byte("x")})
		before := e.Seal(nil)
		if err := e.Add(c.record); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if !bytes.Equal(before, e.Seal(nil)) || e.Len() != 1 {
			t.Errorf("%s: something has changed", c.name)
		}
	}
	almost := aggregate.Record{PartitionKey: "k", Data: nested[:len(nested)-1]}
	if err := new(aggregate.Encoder).Add(almost); err != nil {
		t.Errorf("data that only begins as an aggregate: %v", err)
	}
}

// Two encoders that have seen different keys before give the same bytes.
func TestResetForgetsTheTables(t *testing.T) {
	var e aggregate.Encoder
	add(t, &e, aggregate.Record{PartitionKey: "k", ExplicitHashKey: "1"})
	e.Reset()
	if e.Size() != aggregate.Overhead || e.Len() != 0 {
		t.Errorf("size %d, %d records after Reset", e.Size(), e.Len())
	}
	add(t, &e, aggregate.Record{PartitionKey: "k", ExplicitHashKey: "1", Data: []byte("x")})
	want := wrap("\x0a\x01k\x12\x011\x1a\x07\x08\x00\x10\x00\x1a\x01x")
	if got := e.Seal(nil); !bytes.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestEncoderAllocatesNothing(t *testing.T) {
	var e aggregate.Encoder
	var sealed []byte
	var scratch aggregate.Tags
	keys := strings.Split(strings.Repeat("key-", 10)+"last", "-")
	data := make([]byte, 100)
	n := uint64(0)
	if allocs := testing.AllocsPerRun(20, func() {
		e.Reset()
		n++
		scratch = aggregate.Unit{Number: 1000 + n, Low: 1000}.AppendTo(scratch[:0])
		for i, key := range keys {
			r := aggregate.Record{PartitionKey: key, ExplicitHashKey: maxHash, Data: data}
			if i == 0 {
				r.Tags = scratch
			}
			if e.SizeWith(r) > 1<<20 {
				t.Fatal("too large")
			}
			if err := e.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		sealed = e.Seal(sealed[:0])
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestHashOfARecord(t *testing.T) {
	for _, c := range []struct {
		record aggregate.Record
		want   keyspace.Key
	}{
		{aggregate.Record{PartitionKey: "a"}, keyspace.Of("a")},
		{aggregate.Record{PartitionKey: "a", ExplicitHashKey: "5"}, keyspace.Key{Lo: 5}},
		{aggregate.Record{PartitionKey: "a", ExplicitHashKey: "+0005"}, keyspace.Key{Lo: 5}},
		{aggregate.Record{PartitionKey: "a", ExplicitHashKey: "000"}, keyspace.Key{}},
		{aggregate.Record{PartitionKey: "a", ExplicitHashKey: "five"}, keyspace.Of("a")},
	} {
		if got := c.record.Hash(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %s, want %s", c.record, got, c.want)
		}
	}
}
