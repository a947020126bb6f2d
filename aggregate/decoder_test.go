package aggregate_test

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/keyspace"
)

// A record by hand: partition key index 0 and the data "x".
const plain = "\x08\x00\x1a\x01x"

const maxHash = "340282366920938463463374607431768211455" // 2^128 - 1

// The Java KCL 3.5.1 with protobuf-java 4.27.5 was asked for each of these; where Open differs
// on purpose the name says so.
func TestOpen(t *testing.T) {
	key := lengthed(0x0a, "k")
	deep := func(n int) string { return strings.Repeat("\x4b", n) + strings.Repeat("\x4c", n) }
	long := func(b byte, n int) string { // b as a varint of n bytes
		return string([]byte{b | 0x80}) + strings.Repeat("\x80", n-2) + "\x00"
	}
	for _, c := range []struct {
		name, message string
		want          string // the records' data, or "ordinary"
	}{
		{"one record", key + lengthed(0x1a, plain), "x"},
		{"no record", key, ""},
		{"unknown field only", "\x48\x01", ""},
		{"table behind the records", lengthed(0x1a, plain) + key, "x"},
		{"fields in another order", key + lengthed(0x1a, "\x1a\x01x\x08\x00"), "x"},
		{"no data", key + lengthed(0x1a, "\x08\x00\x1a\x00"), ""},
		{"data missing", key + lengthed(0x1a, "\x08\x00"), "ordinary"},
		{"index missing", key + lengthed(0x1a, "\x1a\x01x"), "ordinary"},
		{"index as bytes is unknown, so missing", key + lengthed(0x1a, "\x0a\x00\x1a\x01x"), "ordinary"},
		{"the last data counts", key + lengthed(0x1a, plain+"\x1a\x01y"), "y"},
		{"the last index counts", key + lengthed(0x1a, "\x08\x07"+plain), "x"},
		{"index out of the table (differs)", key + lengthed(0x1a, "\x08\x01\x1a\x01x"), "ordinary"},
		{"index without a table (differs)", lengthed(0x1a, plain), "ordinary"},
		{"index 2^32 is 0", key + lengthed(0x1a, "\x08\x80\x80\x80\x80\x10\x1a\x01x"), "x"},
		{"index 2^31 (differs)", key + lengthed(0x1a, "\x08\x80\x80\x80\x80\x08\x1a\x01x"), "ordinary"},
		{"explicit index out (differs)", key + lengthed(0x1a, plain+"\x10\x00"), "ordinary"},
		{"explicit index -1 (differs)", key + lengthed(0x12, "7") + lengthed(0x1a, plain+"\x10\xff\xff\xff\xff\x0f"), "ordinary"},
		{"explicit", key + lengthed(0x12, "7") + lengthed(0x1a, plain+"\x10\x00"), "x"},
		{"explicit with a sign", key + lengthed(0x12, "+007") + lengthed(0x1a, plain+"\x10\x00"), "x"},
		{"explicit of 2^128-1", key + lengthed(0x12, maxHash) + lengthed(0x1a, plain+"\x10\x00"), "x"},
		{"explicit of 2^128 (differs)", key + lengthed(0x12, "340282366920938463463374607431768211456") +
			lengthed(0x1a, plain+"\x10\x00"), "ordinary"},
		{"explicit is no number (differs)", key + lengthed(0x12, "x") + lengthed(0x1a, plain+"\x10\x00"), "ordinary"},
		{"explicit is empty (differs)", key + lengthed(0x12, "") + lengthed(0x1a, plain+"\x10\x00"), "ordinary"},
		{"explicit that nobody uses", key + lengthed(0x12, "x") + lengthed(0x12, "7") +
			lengthed(0x1a, plain+"\x10\x01"), "x"},
		{"unknown fields of all types", "\x48\x01\x49........\x4d....\x4a\x02..\x4b\x4c" + key + lengthed(0x1a, plain), "x"},
		{"groups 100 deep", deep(100), ""},
		{"groups 101 deep", deep(101), "ordinary"},
		{"groups in a record", key + lengthed(0x1a, plain+deep(30)), "x"},
		{"group without an end", "\x4b", "ordinary"},
		{"group with another's end", "\x4b\x54", "ordinary"},
		{"end without a group", "\x4c", "ordinary"},
		{"field number 0", "\x00\x01", "ordinary"},
		{"wire type 6", "\x4e\x01", "ordinary"},
		{"varint of ten bytes", "\x48" + long(1, 10), ""},
		{"varint of eleven bytes", "\x48" + long(1, 11), "ordinary"},
		{"length of ten bytes", key + "\x1a" + long(5, 10) + plain, "x"},
		{"tag of ten bytes", key + long(0x1a, 10) + "\x05" + plain, "x"},
		{"length beyond the end", key + "\x1a\x06" + plain, "ordinary"},
		{"length of 2^32 + 5 is 5", key + "\x1a\x85\x80\x80\x80\x10" + plain, "x"},
		{"length below 0", key + "\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "ordinary"},
		{"cut in a varint", "\x48\x80", "ordinary"},
		{"cut in fixed64", "\x49...", "ordinary"},
		{"cut in fixed32", "\x4d...", "ordinary"},
		{"tag", key + lengthed(0x1a, plain+lengthed(0x22, "\x0a\x01a")), "x"},
		{"tag without a key", key + lengthed(0x1a, plain+lengthed(0x22, "\x12\x01a")), "ordinary"},
		{"tag that is no message", key + lengthed(0x1a, plain+lengthed(0x22, "\x0a\x05a")), "ordinary"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d aggregate.Decoder
			got := "ordinary"
			if d.Open(wrap(c.message)) {
				got = ""
				for _, r := range d.Records() {
					got += string(r.Data)
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The magic number, the length and the MD5 are checked before the message.
func TestOpenWrapping(t *testing.T) {
	good := wrap(lengthed(0x0a, "k") + lengthed(0x1a, plain))
	if !aggregate.IsAggregate(good) {
		t.Error("a sound aggregate is none")
	}
	for name, data := range map[string][]byte{
		"nothing":            nil,
		"magic only":         good[:4],
		"no message":         wrap(""),
		"another magic":      append([]byte("\xf3\x89\x9a\xc3"), good[4:]...),
		"another MD5":        append(slices.Clone(good[:len(good)-1]), good[len(good)-1]^1),
		"a byte more":        append(slices.Clone(good), 0),
		"a byte less":        good[:len(good)-1],
		"16 bytes and magic": []byte("\xf3\x89\x9a\xc2................"),
	} {
		var d aggregate.Decoder
		d.Open(good)
		if d.Open(data) || aggregate.IsAggregate(data) {
			t.Errorf("%s: an aggregate", name)
		}
		if d.Len() != 0 || len(d.AppendRecords(nil)) != 0 {
			t.Errorf("%s: the records of the aggregate before are still there", name)
		}
	}
	if _, ok := aggregate.Decode(nil, good[:4]); ok {
		t.Error("Decode takes what Open refuses")
	}
}

// Malformed UTF-8 in keys is replaced as in Java, since the key's MD5 decides the shard. The
// expected texts are Java 17's results for these bytes.
func TestKeysThatAreNotUTF8(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"é\u20ac\U0001f600":        "é\u20ac\U0001f600",
		"\ufffd":                   "\ufffd",
		"a\xffb":                   "a\ufffdb",
		"\xc3":                     "\ufffd",
		"\xc0\x80":                 "\ufffd\ufffd",
		"\xe2\x82":                 "\ufffd",
		"\xe2\x82a":                "\ufffda",
		"\xe0\x80\x80":             "\ufffd\ufffd\ufffd",
		"\xed\xa0\x80":             "\ufffd", // a surrogate
		"\xed\xa0":                 "\ufffd",
		"\xed\xa0a":                "\ufffda",
		"\xf0\x9f\x98":             "\ufffd",
		"\xf0\x9f\x98a":            "\ufffda",
		"\xf0\x80\x80\x80":         "\ufffd\ufffd\ufffd\ufffd",
		"\xf4\x90\x80\x80":         "\ufffd\ufffd\ufffd\ufffd",
		"\xf5\x80\x80\x80":         "\ufffd\ufffd\ufffd\ufffd",
		"\xf0\x9f\xe2\x82\xac\xf1": "\ufffd\u20ac\ufffd",
	} {
		records, ok := aggregate.Decode(nil, wrap(lengthed(0x0a, in)+lengthed(0x1a, plain)))
		if !ok || len(records) != 1 || records[0].PartitionKey != want {
			t.Errorf("%x: got %q, %v, want %q", in, records, ok, want)
		}
	}
}

// Records view the input, and every field is as it was put in.
func TestRecordsAreViews(t *testing.T) {
	var e aggregate.Encoder
	tags := aggregate.Tags(nil).Append("color", "red").Append("empty", "")
	add(t, &e,
		aggregate.Record{PartitionKey: "a", Data: []byte("one"), Tags: tags},
		aggregate.Record{PartitionKey: "b", ExplicitHashKey: "12", Data: []byte("two")})
	data := e.Seal(nil)
	records, ok := aggregate.Decode([]aggregate.Record{{PartitionKey: "first"}}, data)
	if !ok || len(records) != 3 || records[0].PartitionKey != "first" {
		t.Fatalf("got %v, %v", records, ok)
	}
	one, two := records[1], records[2]
	if one.PartitionKey != "a" || one.ExplicitHashKey != "" || two.PartitionKey != "b" ||
		two.ExplicitHashKey != "12" || string(two.Data) != "two" || two.Tags != nil {
		t.Errorf("got %v and %v", one, two)
	}
	var seen []string
	for key, value := range one.Tags.All() {
		seen = append(seen, string(key)+"="+string(value))
	}
	if !slices.Equal(seen, []string{"color=red", "empty="}) {
		t.Errorf("tags: %q", seen)
	}
	at := bytes.Index(data, []byte("one"))
	data[at] = 'O'
	if string(one.Data) != "One" || cap(one.Data) != len(one.Data) {
		t.Error("the data is no view, or one that append would write through")
	}
}

// Unknown fields between tags, and a tag without a value.
func TestTagsByHand(t *testing.T) {
	record := lengthed(0x22, "\x0a\x01a\x0a\x01b") + "\x48\x01" + plain + lengthed(0x22, "\x12\x01v\x0a\x01c") + "\x50\x07"
	records, ok := aggregate.Decode(nil, wrap(lengthed(0x0a, "k")+lengthed(0x1a, record)))
	if !ok {
		t.Fatal("not opened")
	}
	var seen []string
	for key, value := range records[0].Tags.All() {
		if value == nil {
			value = []byte("nil")
		}
		seen = append(seen, string(key)+"="+string(value))
	}
	if !slices.Equal(seen, []string{"b=nil", "c=v"}) || string(records[0].Data) != "x" {
		t.Errorf("got %q", seen)
	}
	for range records[0].Tags.All() {
		break
	}
	for range aggregate.Tags("\x22\x05").All() {
		t.Error("a tag in what is none")
	}
}

// The sub-sequence numbers count from 0, and a loop may stop.
func TestRecordsStops(t *testing.T) {
	var e aggregate.Encoder
	for _, data := range []string{"x", "y", "z"} {
		add(t, &e, aggregate.Record{PartitionKey: "k", Data: []byte(data)})
	}
	var d aggregate.Decoder
	if !d.Open(e.Seal(nil)) || d.Len() != 3 {
		t.Fatalf("%d records", d.Len())
	}
	var seen string
	for sub, r := range d.Records() {
		seen += string(rune('0'+sub)) + string(r.Data)
		if sub == 1 {
			break
		}
	}
	if seen != "0x1y" {
		t.Errorf("saw %q", seen)
	}
}

// A user record outside of the shard voids the aggregate, and the error names the first.
func TestCheck(t *testing.T) {
	var e aggregate.Encoder
	add(t, &e,
		aggregate.Record{PartitionKey: "a", ExplicitHashKey: "0"},
		aggregate.Record{PartitionKey: "b", ExplicitHashKey: "99"},
		aggregate.Record{PartitionKey: "a"}) // MD5 of "a" begins with 0c
	var d aggregate.Decoder
	if !d.Open(e.Seal(nil)) {
		t.Fatal("not opened")
	}
	quarter := keyspace.Uniform(4)[0]
	for _, c := range []struct {
		name  string
		shard keyspace.Range
		sub   int // of the first one outside, -1 if none is
	}{
		{"all", keyspace.All(), -1},
		{"the first quarter", quarter, -1},
		{"without the third", keyspace.Range{End: keyspace.Key{Lo: 99}}, 2},
		{"without the second", keyspace.Range{End: keyspace.Key{Lo: 98}}, 1},
		{"without the first", keyspace.Range{Start: keyspace.Key{Lo: 1}, End: keyspace.Max()}, 0},
		{"the hash of a alone", keyspace.Range{Start: keyspace.Of("a"), End: keyspace.Of("a")}, 0},
	} {
		err := d.Check(c.shard)
		var outside *aggregate.OutsideError
		switch {
		case c.sub < 0 && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.sub >= 0 && (!errors.As(err, &outside) || !errors.Is(err, aggregate.ErrOutsideShard) ||
			outside.Sub != c.sub || outside.Range != c.shard || !strings.Contains(err.Error(), "user record")):
			t.Errorf("%s: got %v, want record %d", c.name, err, c.sub)
		}
	}
	for sub, record := range d.Records() {
		want := []keyspace.Key{{}, {Lo: 99}, keyspace.Of("a")}[sub]
		if record.Hash() != want {
			t.Errorf("record %d: hash %s, want %s", sub, record.Hash(), want)
		}
	}
	e.Reset() // another key in the place of one that has been hashed
	add(t, &e, aggregate.Record{PartitionKey: "b"})
	only := keyspace.Range{Start: keyspace.Of("b"), End: keyspace.Of("b")}
	if !d.Open(e.Seal(nil)) || d.Check(only) != nil {
		t.Error("the hash of another aggregate's key")
	}
}

// A decoder that has seen the keys allocates nothing, and a filter that has seen the lane.
func TestReadingAllocatesNothing(t *testing.T) {
	var e aggregate.Encoder
	for i := range 100 {
		r := aggregate.Record{PartitionKey: strings.Repeat("k", 1+i%7), Data: make([]byte, 100)}
		if i%3 == 0 {
			r.ExplicitHashKey = "17"
		}
		if i == 0 {
			r.Tags = aggregate.Unit{Number: 1, Low: 1}.AppendTo(nil)
		}
		add(t, &e, r)
	}
	data := e.Seal(nil)
	var d aggregate.Decoder
	var filter aggregate.Filter
	var records []aggregate.Record
	shard := keyspace.Range{End: keyspace.Max().Sub(keyspace.Key{Lo: 1})} // not All, so all is hashed
	now := time.UnixMilli(1)
	if n := testing.AllocsPerRun(20, func() {
		if !d.Open(data) || d.Check(shard) != nil {
			t.Fatal("not opened")
		}
		records = d.AppendRecords(records[:0])
		for range filter.Pass(&d, now) {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if len(records) != 100 || filter.Counts.Doubles == 0 {
		t.Errorf("%d records, %+v", len(records), filter.Counts)
	}
}

// Tables of another aggregate, shorter and longer, leave nothing behind.
func TestDecoderIsReused(t *testing.T) {
	var d aggregate.Decoder
	var e aggregate.Encoder
	for _, keys := range []string{"abc", "xbz", "x", "xbc", "cba", "", "a"} {
		e.Reset()
		for i, k := range keys {
			add(t, &e, aggregate.Record{
				PartitionKey: string(k), ExplicitHashKey: strconv.Itoa(int(k)), Data: []byte{byte(i)},
			})
		}
		var got string
		if keys != "" && !d.Open(e.Seal(nil)) {
			t.Fatalf("%s: not opened", keys)
		}
		for _, r := range d.AppendRecords(nil) {
			if got += r.PartitionKey; r.ExplicitHashKey != strconv.Itoa(int(r.PartitionKey[0])) ||
				r.Hash() != (keyspace.Key{Lo: uint64(r.PartitionKey[0])}) {
				t.Errorf("%s: %v", keys, r)
			}
		}
		if keys != "" && got != keys {
			t.Errorf("got %q, want %q", got, keys)
		}
	}
}
