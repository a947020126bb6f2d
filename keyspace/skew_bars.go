package keyspace

import (
	"fmt"
	"strings"
)

// Bars draws the shards' weights as lines of text for a terminal of so many columns, at least
// 40: the shard's number, a bar, its share of the peak in eighths of a column, the weight as
// unit tells it (nil: the number), and its share of the total. Each line ends with a newline.
func (r SkewReport) Bars(columns int, unit func(uint64) string) string {
	if unit == nil {
		unit = func(n uint64) string { return fmt.Sprint(n) }
	}
	number, words := len(fmt.Sprint(max(0, len(r.Shards)-1))), 0
	for _, shard := range r.Shards {
		words = max(words, len([]rune(unit(shard.Weight))))
	}
	width := max(8, max(columns, 40)-number-words-12)
	var text strings.Builder
	for i, shard := range r.Shards {
		bar := eighths(shard.Weight, r.Peak, width)
		fmt.Fprintf(&text, "%*d  %s%s  %*s  %5.1f%%\n", number, i, bar,
			strings.Repeat(" ", width-len([]rune(bar))), words, unit(shard.Weight),
			100*share(shard.Weight, r.Total))
	}
	return text.String()
}

// eighths draws part of whole as a bar of at most so many columns.
func eighths(part, whole uint64, width int) string {
	n := int(share(part, whole)*float64(width*8) + 0.5)
	bar := strings.Repeat("█", n/8)
	if n%8 > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[n%8-1])
	}
	return bar
}

func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return min(1, float64(part)/float64(whole))
}

// SVG draws the shards' weights as a picture of 640 by 240: a bar for each shard, as wide as its
// part of the key space and as high as its weight, and the mean as a line. It stands by itself,
// with a light or a dark background.
func (r SkewReport) SVG() string {
	const width, height, foot = 640.0, 240.0, 20.0
	var text strings.Builder
	fmt.Fprintf(&text, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" `+
		`font-family="sans-serif" font-size="12">`+"\n", width, height)
	for i, shard := range r.Shards {
		left := shard.Range.Start.fraction() * width
		right := shard.Range.End.fraction() * width
		high := share(shard.Weight, r.Peak) * (height - 2*foot)
		fmt.Fprintf(&text, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="#3b82c4" `+
			`stroke="#88888888" stroke-width="0.5"><title>shard %d: %d</title></rect>`+"\n",
			left, height-foot-high, max(0, right-left), high, i, shard.Weight)
	}
	mean := height - foot
	if r.Peak > 0 {
		mean -= r.Mean / float64(r.Peak) * (height - 2*foot)
	}
	fmt.Fprintf(&text, `<line x1="0" x2="%g" y1="%.2f" y2="%.2f" stroke="#d9534f" `+
		`stroke-dasharray="4 3"/>`+"\n", width, mean, mean)
	fmt.Fprintf(&text, `<text x="4" y="14" fill="#888">%d shards, peak/mean %.2f, Gini %.2f`+
		`</text>`+"\n</svg>\n", len(r.Shards), r.PeakToMean, r.Gini)
	return text.String()
}

// fraction returns k / 2^128, for pictures only.
func (k Key) fraction() float64 {
	return (float64(k.Hi) + float64(k.Lo)/(1<<64)) / (1 << 64)
}
