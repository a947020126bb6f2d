package load_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// A Histogram keeps every weight in few cells, and hash keys apart as long as there is room.
func TestLoad(t *testing.T) {
	word := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, ^uint64(0), 1 << 63}))
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(2, 40).Draw(t, "cells")
		histogram, exact := load.NewHistogram(most), map[keyspace.Key]uint64{}
		var total uint64
		for range rapid.IntRange(0, 120).Draw(t, "adds") {
			k, w := keyspace.Key{Hi: word.Draw(t, "hi"), Lo: word.Draw(t, "lo")}, rapid.Uint64Range(0, 9).Draw(t, "weight")
			histogram.Add(k, w)
			if total += w; w > 0 {
				exact[k] += w
			}
		}
		points := histogram.Points()
		for i, p := range points {
			total -= p.Weight
			if i > 0 && !points[i-1].At.Less(p.At) {
				t.Fatalf("not in order: %v", points)
			}
			if len(exact) <= most && exact[p.At] != p.Weight {
				t.Fatalf("%v has %d, want %d", p.At, p.Weight, exact[p.At])
			}
		}
		if total != 0 || len(points) > most || len(exact) <= most && len(points) != len(exact) {
			t.Fatalf("%d cells of %d, %d hash keys; %d is missing",
				len(points), most, len(exact), total)
		}
		// Every weight is in the cell below it.
		for i, p := range points {
			want := uint64(0)
			for k, w := range exact {
				if !k.Less(p.At) && (i+1 == len(points) || k.Less(points[i+1].At)) {
					want += w
				}
			}
			if want != p.Weight {
				t.Fatalf("cell %v has %d, want %d", p.At, p.Weight, want)
			}
		}
	})
}

// Both weights survive the cells' growing.
func TestLoadOfTwoThings(t *testing.T) {
	histogram := load.NewHistogram(8)
	for i := range 1000 {
		histogram.AddPoint(load.Point{At: keyspace.Of(string(rune(i))), Weight: 3, Also: 5})
	}
	var sum load.Point
	for _, p := range histogram.Points() {
		sum.Weight, sum.Also = sum.Weight+p.Weight, sum.Also+p.Also
	}
	if sum.Weight != 3000 || sum.Also != 5000 {
		t.Errorf("%+v", sum)
	}
}
