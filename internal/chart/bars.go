// Package chart draws the skew of a load over shards, as text for a terminal (Skew.Bars) or as an
// SVG picture (Skew.SVG). It is pure.
package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/runnel-stream/runnel/keyspace/load"
)

// Skew is a report to draw.
type Skew struct {
	load.Report
	// Names are the labels of Report.Shards, in the same order. The label of a shard without a
	// name, or with the name "", is its index.
	Names []string
}

// Of more shards than barsMost, Bars draws the barsEnds fullest and as many emptiest.
const (
	barsMost = 64
	barsEnds = 5
)

// Bars draws the weights of the shards as lines of text for a terminal with the given number of
// columns, at least 40. Each line has the name of the shard, a bar for its share of the peak in
// eighths of a column, its weight in the words of unit (nil: the plain number), and its share of
// the total. Each line ends with a newline. Of more than 64 shards it draws the fullest and the
// emptiest ones, and a histogram.
func (r Skew) Bars(columns int, unit func(uint64) string) string {
	if unit == nil {
		unit = func(n uint64) string { return fmt.Sprint(n) }
	}
	var text strings.Builder
	order := make([]int, len(r.Shards))
	for i := range order {
		order[i] = i
	}
	if len(r.Shards) <= barsMost {
		r.bars(&text, order, columns, unit)
		return text.String()
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(r.Shards[b].Weight, r.Shards[a].Weight)
	})
	fmt.Fprintf(&text, "the fullest and the emptiest of %s shards:\n",
		number(float64(len(order))))
	r.bars(&text, slices.Concat(order[:barsEnds], order[len(order)-barsEnds:]), columns, unit)
	text.WriteString("how many shards have how many times the mean:\n")
	r.histogram(&text, columns)
	return text.String()
}

// bars draws the given shards.
func (r Skew) bars(
	text *strings.Builder, shards []int, columns int, unit func(uint64) string,
) {
	names, words := 0, 0
	for _, i := range shards {
		names = max(names, len([]rune(r.name(i))))
		words = max(words, len([]rune(unit(r.Shards[i].Weight))))
	}
	width := max(8, max(columns, 40)-names-words-12)
	for _, i := range shards {
		weight := r.Shards[i].Weight
		fmt.Fprintf(text, "%*s  %s  %*s  %5.1f%%\n", names, r.name(i),
			eighths(weight, r.Peak, width), words, unit(weight), 100*share(weight, r.Total))
	}
}

// histogram draws the numbers of shards by their weight, in multiples of the mean that double from
// a quarter on.
func (r Skew) histogram(text *strings.Builder, columns int) {
	const least, most = -2, 20 // the mean has 2^0
	var steps [most - least + 1]uint64
	first, last := len(steps), 0
	for _, shard := range r.Shards {
		at := 0
		if times := float64(shard.Weight) / max(1, r.Mean); times > 0 {
			at = min(max(0, 1+int(math.Floor(math.Log2(times)))-least), len(steps)-1)
		}
		steps[at]++
		first, last = min(first, at), max(last, at)
	}
	words := len(fmt.Sprint(len(r.Shards)))
	width := max(8, max(columns, 40)-words-20)
	for at := last; at >= first; at-- {
		low, high := math.Exp2(float64(at-1+least)), math.Exp2(float64(at+least))
		name := fmt.Sprintf("%g to %g", low, high)
		if at == 0 {
			name = fmt.Sprintf("below %g", high)
		}
		fmt.Fprintf(text, "%15s  %s  %*d\n", name, eighths(steps[at], slices.Max(steps[:]), width),
			words, steps[at])
	}
}

// name returns the label of a shard.
func (r Skew) name(i int) string {
	if i < len(r.Names) && r.Names[i] != "" {
		return r.Names[i]
	}
	return fmt.Sprint(i)
}

// eighths draws part of whole as a bar, padded with blanks to the given number of columns.
func eighths(part, whole uint64, width int) string {
	n := int(share(part, whole)*float64(width*8) + 0.5)
	bar, columns := strings.Repeat("█", n/8), n/8
	if n%8 > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[n%8-1])
		columns++
	}
	return bar + strings.Repeat(" ", width-columns)
}

func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return min(1, float64(part)/float64(whole))
}
