package shardlog

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/runnel-stream/runnel/internal/vfs"
)

// workbench is a repairer without a log, on an empty disk, with three shards.
func workbench(t *testing.T) *Repairer {
	t.Helper()
	r := &Repairer{
		store:  idleStore(Config{FS: vfs.NewMem(), Dir: "data"}.withDefaults()),
		shards: map[ID]*repair{}, deleted: map[ID]bool{},
	}
	for id := ID(6); id <= 8; id++ {
		r.Create(id)
	}
	return r
}

func payloadOf(first uint64, count int) []byte { return payloadAt(first, count, 1000) }

func payloadAt(first uint64, count int, arrival int64) []byte {
	b := &batch{first: first, count: count, arrival: arrival}
	p := appendBatchHeader(nil, 7, b)
	for i := range count {
		number := Number{Index: first + uint64(i), Arrival: arrival}
		data := fmt.Appendf(nil, "record %d", number.Index)
		p = appendFrame(p, frameSeed(7), number, Entry{"key", data})
	}
	return p
}

// kept returns the records that a repair would write for shard 7.
func (r *Repairer) kept(t *testing.T) (indexes []uint64) {
	t.Helper()
	if err := r.Plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.shards[7].kept {
		rest := p.frames
		for index := p.first; index < p.end; index++ {
			f, err := parseFrame(rest, frameSeed(7), index)
			if err != nil || string(f.data) != fmt.Sprintf("record %d", index) {
				t.Fatalf("record %d: %q, %v", index, f.data, err)
			}
			indexes, rest = append(indexes, index), rest[f.size:]
		}
		if len(rest) > 0 {
			t.Fatalf("%d bytes behind record %d", len(rest), p.end)
		}
	}
	return indexes
}

// Records that arrived before the ones in front of them are of another directory's log. A repair
// takes none, and lists their places as lost, so that a start takes its snapshot.
func TestRecordsOfAnEarlierTime(t *testing.T) {
	r := workbench(t)
	for i, arrival := range []int64{2000, 1000, 1500, 3000} {
		if err := r.Replay(0, payloadAt(uint64(1+3*i), 3, arrival)); err != nil {
			t.Fatal(err)
		}
	}
	if kept := r.kept(t); fmt.Sprint(kept) != "[1 2 3 10 11 12]" {
		t.Errorf("kept %v", kept)
	}
	lost := r.Lost()
	if len(lost) != 1 || lost[0].From != 4 || lost[0].To != 10 {
		t.Errorf("lost %+v", lost)
	}
	snapshot, err := r.Freeze()(t.Context())
	if err == nil {
		_, _, err = decodeSnapshot(snapshot)
	}
	if err != nil {
		t.Error(err)
	}
}

// A damaged byte of a batch in the log costs at most the record that it belongs to, and the list of
// losses names it. That holds also if the batch is the shard's newest.
func TestRescueOfABatch(t *testing.T) {
	whole := payloadOf(4, 5)
	frame := (len(whole) - batchHeader) / 5
	for off := range whole {
		for _, behind := range []bool{false, true} {
			r := workbench(t)
			hurt := bytes.Clone(whole)
			hurt[off] ^= 0x21
			if err := r.Replay(0, payloadOf(1, 3)); err != nil {
				t.Fatal(err)
			}
			if !r.Rescue(hurt) {
				t.Fatalf("byte %d: nothing is known of the batch", off)
			}
			if behind {
				if err := r.Replay(0, payloadOf(9, 2)); err != nil {
					t.Fatal(err)
				}
			}
			var want []uint64
			for index := uint64(1); index <= 8; index++ {
				if off < batchHeader || uint64((off-batchHeader)/frame) != index-4 {
					want = append(want, index)
				}
			}
			if behind {
				want = append(want, 9, 10)
			}
			got, lost := r.kept(t), uint64(0)
			for _, each := range r.Lost() {
				lost += each.To - each.From
			}
			if !slices.Equal(got, want) || behind && int(lost) != 10-len(want) ||
				off >= batchHeader && lost != 1 {
				t.Fatalf("byte %d: %d, not %d; lost %+v", off, got, want, r.Lost())
			}
		}
	}
}

// Bytes that are no batch are not taken for one, and those of records that are there already change
// nothing.
func TestRescueOfOtherBytes(t *testing.T) {
	r := workbench(t)
	if err := r.Replay(0, payloadOf(1, 5)); err != nil {
		t.Fatal(err)
	}
	for _, p := range [][]byte{nil, {1}, make([]byte, 200), bytes.Repeat([]byte{1}, 300)} {
		if r.Rescue(p) {
			t.Errorf("%d bytes count as a batch", len(p))
		}
	}
	hurt := payloadOf(2, 2)
	hurt[0] = 9
	r.Rescue(hurt)
	if got := r.kept(t); !slices.Equal(got, []uint64{1, 2, 3, 4, 5}) || len(r.Lost()) > 0 {
		t.Errorf("%d, lost %+v", got, r.Lost())
	}
}

func FuzzRescue(f *testing.F) {
	f.Add(payloadOf(1, 3))
	f.Add(payloadOf(4, 2)[3:])
	f.Fuzz(func(t *testing.T, p []byte) {
		r := workbench(t)
		if err := r.Replay(0, payloadOf(1, 3)); err != nil {
			t.Fatal(err)
		}
		r.Rescue(p)
		if err := r.Plan(t.Context()); err != nil {
			t.Fatal(err)
		}
		data, err := r.Freeze()(t.Context())
		if err == nil {
			_, _, err = decodeSnapshot(data)
		}
		if err != nil {
			t.Error(err)
		}
	})
}
