package aggregate_test

import (
	"bytes"
	"crypto/md5"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/aggregate"
)

// The reference decoder: as plain as can be, a message becomes a list of fields, and only then
// is anything decided.
type plainField struct {
	number uint64
	wire   uint64
	value  uint64
	bytes  []byte
}

var errPlain = errors.New("not a message")

// parsePlain reads a message, or the inside of a group up to the end of the group with that
// number. depth is how many may still be opened inside.
func parsePlain(in *bytes.Reader, group uint64, depth int) (fields []plainField, err error) {
	if depth < 0 {
		return nil, errPlain
	}
	for in.Len() > 0 {
		tag, err := plainVarint(in)
		if err != nil {
			return nil, err
		}
		f := plainField{number: tag % (1 << 32) / 8, wire: tag % 8}
		if f.number == 0 {
			return nil, errPlain
		}
		take := func(n int64) {
			if n < 0 || n > int64(in.Len()) {
				err = errPlain
				return
			}
			f.bytes = make([]byte, n)
			in.Read(f.bytes)
		}
		switch f.wire {
		case 0:
			f.value, err = plainVarint(in)
		case 1:
			take(8)
		case 2:
			var size uint64
			if size, err = plainVarint(in); err == nil {
				take(int64(int32(size % (1 << 32))))
			}
		case 3:
			_, err = parsePlain(in, f.number, depth-1)
		case 4:
			if f.number != group {
				return nil, errPlain
			}
			return fields, nil
		case 5:
			take(4)
		default:
			err = errPlain
		}
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	if group != 0 {
		return nil, errPlain
	}
	return fields, nil
}

func plainVarint(in *bytes.Reader) (uint64, error) {
	sum := new(big.Int)
	for i := range uint(10) {
		b, err := in.ReadByte()
		if err != nil {
			return 0, errPlain
		}
		sum.Add(sum, new(big.Int).Lsh(big.NewInt(int64(b%128)), 7*i))
		if b < 128 {
			return new(big.Int).And(sum, new(big.Int).SetUint64(1<<64-1)).Uint64(), nil
		}
	}
	return 0, errPlain
}

type plainRecord struct {
	key, explicit, data string
	tags                []string
}

// decodePlain returns nil, false for an ordinary record.
func decodePlain(data []byte) (records []plainRecord, ok bool) {
	if len(data) < 21 || !bytes.HasPrefix(data, []byte{0xf3, 0x89, 0x9a, 0xc2}) {
		return nil, false
	}
	message := data[4 : len(data)-16]
	if sum := md5.Sum(message); !bytes.HasSuffix(data, sum[:]) {
		return nil, false
	}
	fields, err := parsePlain(bytes.NewReader(message), 0, 100)
	if err != nil {
		return nil, false
	}
	var keys, explicit []string
	for _, f := range fields {
		switch {
		case f.wire == 2 && f.number == 1:
			keys = append(keys, string(f.bytes))
		case f.wire == 2 && f.number == 2:
			explicit = append(explicit, string(f.bytes))
		}
	}
	for _, f := range fields {
		if f.wire == 2 && f.number == 3 {
			r, ok := recordPlain(f.bytes, keys, explicit)
			if !ok {
				return nil, false
			}
			records = append(records, r)
		}
	}
	return records, true
}

func recordPlain(message []byte, keys, explicit []string) (r plainRecord, ok bool) {
	fields, err := parsePlain(bytes.NewReader(message), 0, 99)
	if err != nil {
		return r, false
	}
	var key, hash *uint64
	var data *[]byte
	for _, f := range fields {
		switch {
		case f.wire == 0 && f.number == 1:
			key = &f.value
		case f.wire == 0 && f.number == 2:
			hash = &f.value
		case f.wire == 2 && f.number == 3:
			data = &f.bytes
		case f.wire == 2 && f.number == 4:
			tag, ok := tagPlain(f.bytes)
			if !ok {
				return r, false
			}
			r.tags = append(r.tags, tag)
		}
	}
	if key == nil || data == nil {
		return r, false
	}
	r.data = string(*data)
	if at := int64(int32(*key)); at < 0 || at >= int64(len(keys)) {
		return r, false
	} else if r.key = keys[at]; !utf8.ValidString(r.key) {
		r.key = "not UTF-8" // TestKeysThatAreNotUTF8 has these
	}
	if hash == nil {
		return r, true
	}
	if at := int64(int32(*hash)); at < 0 || at >= int64(len(explicit)) {
		return r, false
	} else {
		r.explicit = explicit[at]
	}
	digits := strings.TrimPrefix(r.explicit, "+")
	n, isNumber := new(big.Int).SetString(digits, 10)
	return r, isNumber && strings.Trim(digits, "0123456789") == "" && n.BitLen() <= 128
}

func tagPlain(message []byte) (tag string, ok bool) {
	fields, err := parsePlain(bytes.NewReader(message), 0, 98)
	key, value := "", "none"
	for _, f := range fields {
		switch {
		case f.wire == 2 && f.number == 1:
			key, ok = string(f.bytes), true
		case f.wire == 2 && f.number == 2:
			value = "some " + string(f.bytes)
		}
	}
	return key + "=" + value, ok && err == nil
}

// compareDecoders fails the test where the two decoders differ.
func compareDecoders(t *testing.T, d *aggregate.Decoder, data []byte) {
	want, aggregated := decodePlain(data)
	if got := d.Open(data); got != aggregated {
		t.Fatalf("%x: an aggregate is %v, want %v", data, got, aggregated)
	}
	records := d.AppendRecords(nil)
	if len(records) != len(want) || d.Len() != len(want) {
		t.Fatalf("%x: %d records, want %d", data, len(records), len(want))
	}
	for i, r := range records {
		got := plainRecord{key: r.PartitionKey, explicit: r.ExplicitHashKey, data: string(r.Data)}
		if want[i].key == "not UTF-8" {
			got.key = want[i].key
		}
		for key, value := range r.Tags.All() {
			tag := string(key) + "=none"
			if value != nil {
				tag = string(key) + "=some " + string(value)
			}
			got.tags = append(got.tags, tag)
		}
		if got.key != want[i].key || got.explicit != want[i].explicit || got.data != want[i].data ||
			!slices.Equal(got.tags, want[i].tags) {
			t.Fatalf("%x: record %d is %+v, want %+v", data, i, got, want[i])
		}
		r.Unit()
	}
}

// FuzzDecode compares with the reference; the input is a message, with a sound wrapping.
func FuzzDecode(f *testing.F) {
	key := lengthed(0x0a, "k")
	for _, message := range []string{
		key + lengthed(0x1a, plain),
		key + lengthed(0x0a, "l") + lengthed(0x12, "7") + lengthed(0x1a, plain+"\x10\x00") + lengthed(0x1a, "\x08\x01\x1a\x01y"),
		lengthed(0x1a, plain+lengthed(0x22, "\x0a\x01a\x12\x01b")+"\x4b\x4c") + key + "\x48\x01\x49........\x4d....",
		key + lengthed(0x1a, plain+"\x08\x80\x80\x80\x80\x10"),
		key + lengthed(0x1a, plain+lengthed(0x22, "\x0a\x03rnl\x12\x1cAAECAwQFBgcICQoLDA0ODw.17.12")),
	} {
		f.Add([]byte(message))
	}
	var d aggregate.Decoder
	f.Fuzz(func(t *testing.T, message []byte) {
		data := wrap(string(message))
		compareDecoders(t, &d, data)
		compareDecoders(t, &d, message) // most have no magic number
		data[len(data)-1] ^= 1
		compareDecoders(t, &d, data)
	})
}

// FuzzEncode builds an aggregate from the input and reads it back by both decoders.
func FuzzEncode(f *testing.F) {
	f.Add([]byte("a\x00b\x01c"), "7", uint64(3), uint64(2), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, key string, number, low uint64, split uint8) {
		var e aggregate.Encoder
		var taken []aggregate.Record
		for chunk := range slices.Chunk(data, 1+int(split)) {
			r := aggregate.Record{PartitionKey: key, Data: chunk}
			if len(chunk)%2 == 0 {
				r.PartitionKey, r.ExplicitHashKey = string(chunk), key
			}
			if len(chunk)%3 == 0 {
				r.Tags = aggregate.Unit{Number: number, Low: low}.AppendTo(r.Tags)
			}
			size := e.SizeWith(r)
			if e.Add(r) == nil {
				taken = append(taken, r)
				if e.Size() != size {
					t.Fatalf("size %d, SizeWith said %d", e.Size(), size)
				}
			}
		}
		if len(taken) == 0 {
			return
		}
		sealed := e.Seal(nil)
		var d aggregate.Decoder
		compareDecoders(t, &d, sealed)
		if d.Len() != len(taken) || len(sealed) != e.Size() {
			t.Fatalf("%d records of %d", d.Len(), len(taken))
		}
		for i, r := range d.Records() {
			unit, ok := r.Unit()
			sound := number >= 1 && low >= 1 && number <= aggregate.MaxNumber && low <= aggregate.MaxNumber
			if ok != (sound && len(taken[i].Data)%3 == 0) || ok && (unit.Number != number || unit.Low != low) {
				t.Fatalf("unit %+v, %v", unit, ok)
			}
		}
	})
}
