package shardlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func testBatch(id ID, first uint64, arrival int64, datas ...string) []byte {
	b := &batch{first: first, count: len(datas), arrival: arrival}
	payload := appendBatchHeader(nil, id, b)
	for i, data := range datas {
		number := Number{Index: first + uint64(i), Arrival: arrival}
		payload = appendFrame(payload, frameSeed(id), number, Entry{"k", []byte(data)})
	}
	return payload
}

func TestBatch(t *testing.T) {
	payload := testBatch(3, 10, 99, "a", "bb", "")
	id, b, err := decodeBatch(payload)
	if err != nil {
		t.Fatal(err)
	}
	if id != 3 || b.first != 10 || b.end() != 13 || b.arrival != 99 {
		t.Errorf("shard %d, %+v", id, b)
	}
	for from := uint64(9); from < 13; from++ {
		rest := b.after(from)
		got := collector{maxRecords: 10, maxBytes: 100}
		got.addBatch(rest)
		want := "a,bb,"
		if from > 10 {
			want = strings.Join(strings.Split(want, ",")[from-10:], ",")
		}
		var datas []string
		for i, r := range got.finish() {
			datas = append(datas, string(r.Data))
			if r.Index != max(from, 10)+uint64(i) || r.PartitionKey != "k" || r.Arrival != 99 {
				t.Errorf("after %d: %+v", from, r)
			}
		}
		if strings.Join(datas, ",") != want {
			t.Errorf("after %d: %q, not %q", from, datas, want)
		}
	}
	if want := BatchSize([]Entry{{"k", []byte("a")}, {"k", []byte("bb")}, {"k", nil}}); want !=
		len(payload) {
		t.Errorf("BatchSize is %d, not %d", want, len(payload))
	}
}

func TestBatchRefused(t *testing.T) {
	good := testBatch(3, 10, 99, "a", "bb")
	edit := func(at int, v uint32) []byte {
		bad := bytes.Clone(good)
		binary.LittleEndian.PutUint32(bad[at:], v)
		return bad
	}
	for name, payload := range map[string][]byte{
		"nothing":          {},
		"another op":       append([]byte{9}, good[1:]...),
		"header cut off":   good[:20],
		"record cut off":   good[:len(good)-1],
		"something after":  append(bytes.Clone(good), 0),
		"another shard":    edit(1, 4),
		"another index":    edit(9, 11),
		"another arrival":  edit(17, 98),
		"fewer records":    edit(25, 1),
		"more records":     edit(25, 3),
		"no records":       edit(25, 0)[:batchHeader],
		"index 0":          testBatch(3, 0, 99, "a"),
		"the index's wrap": testBatch(3, ^uint64(0), 99, "a", "b"),
	} {
		if _, _, err := decodeBatch(payload); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTrimPayload(t *testing.T) {
	payload := appendTrim(nil, 3, 77)
	id, oldest, err := decodeTrim(payload)
	if id != 3 || oldest != 77 || err != nil || len(payload) != trimSize {
		t.Errorf("shard %d, record %d, %v", id, oldest, err)
	}
	for _, bad := range [][]byte{nil, payload[:16], append(payload, 0), {opBatch}} {
		if _, _, err := decodeTrim(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

func FuzzPayload(f *testing.F) {
	f.Add(testBatch(3, 10, 99, "a", "bb", ""))
	f.Add(appendTrim(nil, 3, 77))
	f.Fuzz(func(t *testing.T, payload []byte) {
		if id, oldest, err := decodeTrim(payload); err == nil {
			if again := appendTrim(nil, id, oldest); !bytes.Equal(again, payload) {
				t.Errorf("%x was read as a trim of %d to %d", payload, id, oldest)
			}
			return
		}
		id, b, err := decodeBatch(payload)
		if err != nil {
			return
		}
		got := collector{maxRecords: b.count, maxBytes: len(payload)}
		if !got.addBatch(b) || len(got.records) != b.count {
			t.Fatalf("%d of %d records", len(got.records), b.count)
		}
		again := appendBatchHeader(nil, id, b)
		for _, r := range got.finish() {
			again = appendFrame(again, frameSeed(id), r.Number, Entry{r.PartitionKey, r.Data})
		}
		if !bytes.Equal(again, payload) {
			t.Errorf("%x was read as %s", payload, fmt.Sprint(got.records))
		}
	})
}
