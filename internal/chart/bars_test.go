package chart_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/chart"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// chartOf returns the chart of n equal shards with these weights, each by one name.
func chartOf(t *testing.T, n int, weights ...uint64) chart.Skew {
	t.Helper()
	layout := keyspace.Uniform(n)
	slices.Reverse(layout) // any order
	s, err := load.NewSkew(layout, 10)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(layout)
	for i, w := range weights {
		s.Add(layout[i].End, fmt.Sprint("name-", i), w)
	}
	return chart.Skew{Report: s.Report(50, 2)}
}

func TestSkewBars(t *testing.T) {
	r := chartOf(t, 4, 10, 0, 80, 10)
	want := "" +
		"0  ███▊                            10   10.0%\n" +
		"1                                   0    0.0%\n" +
		"2  ██████████████████████████████  80   80.0%\n" +
		"3  ███▊                            10   10.0%\n"
	if got := r.Bars(45, nil); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for line := range strings.Lines(r.Bars(0, func(uint64) string { return "much" })) {
		if len([]rune(line)) > 41 || !strings.Contains(line, "much") {
			t.Errorf("got %q", line)
		}
	}
}

// Of many shards, the ends and a histogram are drawn.
func TestSkewBarsOfMany(t *testing.T) {
	weights := make([]uint64, 100)
	for i := range weights {
		weights[i] = uint64(i % 10)
	}
	weights[42] = 4500
	r := chartOf(t, 100, weights...)
	r.Names = make([]string, 100)
	r.Names[42] = "orders-42"
	want := "" +
		"the fullest and the emptiest of 100 shards:\n" +
		"orders-42  ████████████████████  4500   90.9%\n" +
		"        9                           9    0.2%\n" +
		"       19                           9    0.2%\n" +
		"       29                           9    0.2%\n" +
		"       39                           9    0.2%\n" +
		"       50                           0    0.0%\n" +
		"       60                           0    0.0%\n" +
		"       70                           0    0.0%\n" +
		"       80                           0    0.0%\n" +
		"       90                           0    0.0%\n" +
		"how many shards have how many times the mean:\n" +
		"      64 to 128  ▎                         1\n" +
		"       32 to 64                            0\n" +
		"       16 to 32                            0\n" +
		"        8 to 16                            0\n" +
		"         4 to 8                            0\n" +
		"         2 to 4                            0\n" +
		"         1 to 2                            0\n" +
		"       0.5 to 1                            0\n" +
		"    0.25 to 0.5                            0\n" +
		"     below 0.25  ██████████████████████   99\n"
	if got := r.Bars(45, nil); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	all := chartOf(t, 64, weights[:64]...).Bars(45, nil)
	if lines := strings.Count(all, "\n"); lines != 64 {
		t.Errorf("64 shards take %d lines", lines)
	}
}
