package chart

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/keyspace"
)

// The frame of a skew's picture, in pixels, and how many bars it has at most.
const (
	svgWidth, svgHeight = 720, 340
	svgLeft, svgRight   = 76, 704
	svgTop, svgFoot     = 70, 280
	svgBars             = 200
)

// svgStyle has colours for a light and a dark background, and paints that background itself, so
// that the picture is readable on any page. Colour-blind people can distinguish its blue and
// orange, which are those of Okabe and Ito.
const svgStyle = `<style>
.back{fill:#fff}text{fill:#24292f}.soft{fill:#57606a}.grid{stroke:#d8dee4}.axis{stroke:#57606a}
.rest{fill:#0072b2}.hot{fill:#d55e00}.mean{stroke:#24292f;stroke-dasharray:5 4}
.limit{stroke:#b00020;stroke-width:2}
@media(prefers-color-scheme:dark){
.back{fill:#0d1117}text{fill:#e6edf3}.soft{fill:#9da7b3}.grid{stroke:#30363d}.axis{stroke:#9da7b3}
.rest{fill:#56b4e9}.hot{fill:#e69f00}.mean{stroke:#e6edf3}.limit{stroke:#ff6b6b}
}
</style>`

// SVG draws the weights of the shards as a complete picture, for light and dark backgrounds: a bar
// for each shard, as wide as its part of the key space and as high as its weight. The foot of a bar
// is the weight of its hottest names. A line marks the mean, and another one the limit if that is
// at most twice the peak. With more than 200 shards, neighbours share a bar, which has the height
// of the highest of them.
//
// Weights are multiplied by scale and labelled with unit; 1 and "" leave them as they are.
func (r Skew) SVG(scale float64, unit string) string {
	p := picture{report: r, scale: scale, unit: unit}
	p.group = (len(r.Shards) + svgBars - 1) / svgBars
	top := float64(max(r.Peak, 1)) * scale
	if near := float64(r.Limit) * scale; near <= 2*top {
		p.limit = near
		top = max(top, near)
	}
	p.step = niceStep(top / 5)
	p.steps = int(math.Ceil(top/p.step - 1e-9))
	p.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`font-family="DejaVu Sans, Verdana, sans-serif" font-size="12">`, svgWidth, svgHeight)
	p.put("%s", svgStyle)
	p.put(`<path class="back" d="M0 0h%dv%dH0z"/>`, svgWidth, svgHeight)
	p.put(`<text x="%d" y="24" font-size="15">%s: peak to mean %.2f, Gini %.2f</text>`, svgLeft,
		p.shards(), r.PeakToMean, r.Gini)
	p.legend()
	p.grid()
	p.bars()
	p.lines()
	p.put("</svg>")
	return p.text.String()
}

// picture is an SVG under construction.
type picture struct {
	report      Skew
	scale       float64 // of a weight
	unit        string
	step, limit float64 // between two grid lines; the limit of a shard, 0 if not drawn
	steps       int
	group       int // number of shards that share a bar
	text        strings.Builder
}

func (p *picture) put(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

func (p *picture) shards() string {
	if n := len(p.report.Shards); n != 1 {
		return number(float64(n)) + " shards"
	}
	return "1 shard"
}

// y returns the height of a scaled weight.
func (p *picture) y(scaled float64) float64 {
	return svgFoot - scaled/(p.step*float64(p.steps))*(svgFoot-svgTop)
}

// number formats a number with four digits, and with commas between thousands.
func number(n float64) string {
	if n >= 1000 {
		n = math.Round(n)
	} else {
		n, _ = strconv.ParseFloat(strconv.FormatFloat(n, 'g', 4, 64), 64)
	}
	text := strconv.FormatFloat(n, 'f', -1, 64)
	whole, _, _ := strings.Cut(text, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func (p *picture) legend() {
	at := svgLeft
	entry := func(mark, text string) {
		p.put(mark, at)
		p.put(`<text x="%d" y="50">%s</text>`, at+24, text)
		at += 24 + 7*len(text) + 16
	}
	if n := len(p.report.Hot); n > 0 {
		word := fmt.Sprintf("the %d heaviest keys", n)
		if n == 1 {
			word = "the heaviest key"
		}
		entry(`<path class="hot" d="M%d 40h16v11h-16z"/>`, word)
	}
	entry(`<path class="rest" d="M%d 40h16v11h-16z"/>`, "other keys")
	entry(`<path class="mean" d="M%d 46h18"/>`, "mean")
	switch {
	case p.limit > 0:
		entry(`<path class="limit" d="M%d 46h18"/>`, "what a shard takes")
	case p.report.Limit > 0:
		p.put(`<text class="soft" x="%d" y="50">a shard takes %s %s</text>`, at,
			number(float64(p.report.Limit)*p.scale), escaped(p.unit))
	}
}

// grid draws the lines of the weights and the labels of both axes.
func (p *picture) grid() {
	for i := range p.steps + 1 {
		at := p.y(p.step * float64(i))
		p.put(`<path class="grid" d="M%d %.1fH%d"/>`, svgLeft, at, svgRight)
		p.put(`<text class="soft" x="%d" y="%.1f" text-anchor="end">%s</text>`, svgLeft-8, at+4,
			number(p.step*float64(i)))
	}
	p.put(`<text class="soft" x="16" y="%d" text-anchor="middle" transform="rotate(-90 16 %d)">%s`+
		`</text>`, (svgTop+svgFoot)/2, (svgTop+svgFoot)/2, escaped(p.unit))
	words := "shards by hash key, each as wide as its part of the key space"
	if p.group > 1 {
		words = fmt.Sprintf("shards by hash key; of each %d neighbours, the one with the most",
			p.group)
	}
	p.below((svgLeft+svgRight)/2, 42, "middle", words)
}

// below writes a label below the axis.
func (p *picture) below(x float64, depth int, anchor, words string) {
	p.put(`<text class="soft" x="%.1f" y="%d" text-anchor="%s">%s</text>`, x, svgFoot+depth, anchor,
		escaped(words))
}

// bars draws the shards, and their names if all of them fit.
func (p *picture) bars() {
	shards, named := p.report.Shards, p.named()
	hot := make([]uint64, len(shards)) // at most the shard's weight
	for _, name := range p.report.Hot {
		hot[name.Shard] += min(name.AtLeast(), shards[name.Shard].Weight-hot[name.Shard])
	}
	for first := 0; first < len(shards); first += p.group {
		last, high := min(first+p.group, len(shards))-1, first
		for i := first; i <= last; i++ {
			if shards[i].Weight > shards[high].Weight {
				high = i
			}
		}
		left, right := across(keyspace.Range{
			Start: shards[first].Range.Start, End: shards[last].Range.End,
		})
		if right-left > 3 {
			left, right = left+0.5, right-0.5
		}
		p.bar(high, left, right, hot[high])
		if named {
			p.below((left+right)/2, 18, "middle", p.report.name(first))
		}
	}
	if !named {
		p.below(svgLeft, 18, "start", "0")
		p.below((svgLeft+svgRight)/2, 18, "middle", "2¹²⁷")
		p.below(svgRight, 18, "end", "2¹²⁸")
	}
}

// named reports whether the names of all shards fit below their bars.
func (p *picture) named() bool {
	for i, shard := range p.report.Shards {
		if left, right := across(shard.Range); right-left < float64(8*len(p.report.name(i))+4) {
			return false
		}
	}
	return true
}

// bar draws a shard, with the weight of its hottest names at its foot.
func (p *picture) bar(i int, left, right float64, hot uint64) {
	shard := p.report.Shards[i]
	foot, top := p.y(float64(hot)*p.scale), p.y(float64(shard.Weight)*p.scale)
	title := fmt.Sprintf("shard %s: %s %s", p.report.name(i),
		number(float64(shard.Weight)*p.scale), p.unit)
	p.put(`<g><title>%s</title>`, escaped(strings.TrimSpace(title)))
	rect := func(class string, from, to float64) {
		p.put(`<rect class="%s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`, class, left, from,
			max(0, right-left), to-from)
	}
	rect("rest", top, foot)
	if hot > 0 {
		rect("hot", foot, svgFoot)
	}
	p.put(`</g>`)
}

// lines draws the axis, the mean and the limit above the bars.
func (p *picture) lines() {
	p.put(`<path class="axis" d="M%d %dH%d"/>`, svgLeft, svgFoot, svgRight)
	p.put(`<path class="mean" d="M%d %.1fH%d"/>`, svgLeft, p.y(p.report.Mean*p.scale), svgRight)
	if p.limit > 0 {
		p.put(`<path class="limit" d="M%d %.1fH%d"/>`, svgLeft, p.y(p.limit), svgRight)
	}
}

// across returns the left and the right edge of a range.
func across(r keyspace.Range) (left, right float64) {
	return svgLeft + r.Start.Fraction()*(svgRight-svgLeft),
		svgLeft + r.End.Fraction()*(svgRight-svgLeft)
}

// niceStep returns the lowest of …, 0.5, 1, 2, 5, 10, … that is at least the given positive number.
func niceStep(least float64) float64 {
	ten := math.Pow(10, math.Floor(math.Log10(least)))
	for _, step := range []float64{1, 2, 5} {
		if step*ten >= least*(1-1e-9) {
			return step * ten
		}
	}
	return 10 * ten
}

// escaped returns the text as XML, without control characters.
func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a Builder never fails
	return out.String()
}
