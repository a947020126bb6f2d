package shardlog

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
)

var testImages = []shardImage{
	{id: 1, oldest: 1, next: 1},
	{
		id: 2, oldest: 55, next: 301, arrival: 1_700_000_000_000, sealed: true,
		segments: []segmentImage{
			{50, 60, 4000, 1_600_000_000_000, 1_650_000_000_000},
			{60, 301, 90_000, 1_650_000_000_000, 1_700_000_000_000},
		},
	},
	{id: math.MaxUint64, oldest: 9, next: 9, arrival: 5},
}

func TestSnapshot(t *testing.T) {
	for n := range len(testImages) + 1 {
		want := testImages[:n:n]
		got, skipped, err := decodeSnapshot(encodeSnapshot(want, 0))
		if err != nil || len(got) != n || n > 0 && !reflect.DeepEqual(got, want) || skipped != 0 {
			t.Errorf("%d shards: got %+v, %d, %v", n, got, skipped, err)
		}
	}
	skipping := slices.Clone(testImages)
	skipping[0].skips = skips{{1, 7 << 32}}
	skipping[1].skips = skips{{20, 3 << 32}, {301, 7 << 32}}
	got, skipped, err := decodeSnapshot(encodeSnapshot(skipping, 7<<32))
	if err != nil || !reflect.DeepEqual(got, skipping) || skipped != 7<<32 {
		t.Errorf("with skips: got %+v, %d, %v", got, skipped, err)
	}
	lacking := []shardImage{{id: 3, oldest: 5, next: 9}, {
		id: 4, oldest: 1, next: 30, arrival: 3, segments: []segmentImage{
			{3, 9, 500, 1, 2}, {10, 20, 500, 2, 2},
		},
	}}
	for _, skip := range []uint64{0, 7 << 32} {
		data := encodeSnapshot(lacking, skip)
		got, skipped, err := decodeSnapshot(data)
		if err != nil || !reflect.DeepEqual(got, lacking) || skipped != skip || data[0] != 3 {
			t.Errorf("with lost records: got %+v, %d, %v", got, skipped, err)
		}
	}
	if lost := lacking[0].lost() + lacking[1].lost(); lost != 4+2+1+10 {
		t.Errorf("%d records count as lost", lost)
	}
	if encodeSnapshot(testImages, 0)[0] != 1 {
		t.Error("a snapshot without skips is not of version 1, which older programs read")
	}
}

func TestSnapshotRefused(t *testing.T) {
	good := encodeSnapshot(testImages, 0)
	for n := range good {
		if _, _, err := decodeSnapshot(good[:n]); !errors.Is(err, ErrFormat) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	segs := func(segments ...segmentImage) shardImage {
		return shardImage{id: 1, oldest: 1, next: 20, segments: segments}
	}
	for name, bad := range map[string][]byte{
		"another version":    append([]byte{4}, good[1:]...),
		"something after":    append(bytes.Clone(good), 0),
		"oldest 0":           encodeSnapshot([]shardImage{{id: 1, next: 1}}, 0),
		"oldest > next":      encodeSnapshot([]shardImage{{id: 1, oldest: 3, next: 2}}, 0),
		"nothing for 1 to 2": encodeVersion(1, []shardImage{{id: 1, oldest: 1, next: 2}}, 0),
		"nothing for 1 to 4": encodeVersion(2, []shardImage{segs(segmentImage{5, 20, 900, 1, 2})}, 1),
		"an empty segment": encodeSnapshot([]shardImage{
			segs(segmentImage{20, 20, 500, 1, 2}),
		}, 0),
		"too few bytes": encodeSnapshot([]shardImage{segs(segmentImage{1, 20, 50, 1, 2})}, 0),
		"a hole": encodeVersion(1, []shardImage{
			segs(segmentImage{1, 9, 500, 1, 2}, segmentImage{10, 20, 500, 2, 2}),
		}, 0),
		"an end before next": encodeVersion(1, []shardImage{
			segs(segmentImage{1, 19, 900, 1, 2}),
		}, 0),
		"segments that overlap": encodeVersion(3, []shardImage{
			segs(segmentImage{1, 9, 500, 1, 2}, segmentImage{8, 20, 500, 2, 2}),
		}, 0),
		"segments beyond next": encodeVersion(3, []shardImage{
			segs(segmentImage{2, 21, 900, 1, 2}),
		}, 0),
		"a skip from nothing": encodeSnapshot([]shardImage{
			{id: 1, oldest: 2, next: 2, skips: skips{{0, 1}}},
		}, 1),
		"a skip from beyond the end": encodeSnapshot([]shardImage{
			{id: 1, oldest: 2, next: 2, skips: skips{{3, 1}}},
		}, 1),
		"a skip back": encodeSnapshot([]shardImage{
			{id: 1, oldest: 2, next: 2, skips: skips{{1, 5}, {2, 5}}},
		}, 5),
	} {
		if got, _, err := decodeSnapshot(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add(encodeSnapshot(nil, 0))
	f.Add(encodeSnapshot(testImages, 0))
	f.Add(encodeSnapshot([]shardImage{{id: 1, oldest: 2, next: 7}}, 0))
	f.Add(encodeSnapshot([]shardImage{{id: 1, oldest: 2, next: 2, skips: skips{{2, 9}}}}, 9))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, skipped, err := decodeSnapshot(data)
		if err != nil {
			return
		}
		again, same, err := decodeSnapshot(encodeSnapshot(got, skipped))
		if err != nil || !reflect.DeepEqual(got, again) || skipped != same {
			t.Errorf("%+v became %+v, %v", got, again, err)
		}
	})
}
