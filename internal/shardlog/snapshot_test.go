package shardlog

import (
	"bytes"
	"errors"
	"math"
	"reflect"
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
		got, err := decodeSnapshot(encodeSnapshot(want))
		if err != nil || len(got) != n || n > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%d shards: got %+v, %v", n, got, err)
		}
	}
}

func TestSnapshotRefused(t *testing.T) {
	good := encodeSnapshot(testImages)
	for n := range good {
		if _, err := decodeSnapshot(good[:n]); !errors.Is(err, ErrFormat) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	segs := func(segments ...segmentImage) shardImage {
		return shardImage{id: 1, oldest: 1, next: 20, segments: segments}
	}
	for name, bad := range map[string][]byte{
		"another version":    append([]byte{2}, good[1:]...),
		"something after":    append(bytes.Clone(good), 0),
		"oldest 0":           encodeSnapshot([]shardImage{{id: 1, next: 1}}),
		"oldest > next":      encodeSnapshot([]shardImage{{id: 1, oldest: 3, next: 2}}),
		"nothing for 1 to 2": encodeSnapshot([]shardImage{{id: 1, oldest: 1, next: 2}}),
		"nothing for 1 to 4": encodeSnapshot([]shardImage{segs(segmentImage{5, 20, 900, 1, 2})}),
		"an empty segment": encodeSnapshot([]shardImage{
			segs(segmentImage{20, 20, 500, 1, 2}),
		}),
		"too few bytes": encodeSnapshot([]shardImage{segs(segmentImage{1, 20, 50, 1, 2})}),
		"a hole": encodeSnapshot([]shardImage{
			segs(segmentImage{1, 9, 500, 1, 2}, segmentImage{10, 20, 500, 2, 2}),
		}),
		"an end before next": encodeSnapshot([]shardImage{
			segs(segmentImage{1, 19, 900, 1, 2}),
		}),
	} {
		if got, err := decodeSnapshot(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add(encodeSnapshot(nil))
	f.Add(encodeSnapshot(testImages))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeSnapshot(data)
		if err != nil {
			return
		}
		again, err := decodeSnapshot(encodeSnapshot(got))
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Errorf("%+v became %+v, %v", got, again, err)
		}
	})
}
