package allocate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// balancePage is docs/balance.md.
func balancePage(t testing.TB, all []measured) string {
	a := allocate.New(spaceOf(t, "128"))
	for range 11 {
		if _, err := a.Allocate(); err != nil {
			t.Fatal(err)
		}
	}
	two := all[2].of[2]
	return strings.NewReplacer(
		"{table}", a.Table(),
		"{apart}", table(all, apart), "{ratio}", table(all, ratio),
		"{reversal}", apart(worstOf(all[0].of[2:])), "{md5}", apart(worstOf(all[1].of[2:])),
		"{reversalRatio}", ratio(worstOf(all[0].of[2:])),
		"{md5Ratio}", ratio(worstOf(all[1].of[2:])),
		"{halves}", apart(two), "{halvesAt}", fmt.Sprint(two.apartAt),
	).Replace(balanceText)
}

const balanceText = `# Balance

How evenly keys fall on the shards of a stream. A test measures the figures and writes this page:
` + "`go test ./keyspace/allocate -run TestBalancePage -update`" + `.

The range of one shard contains a record's hash key, and the record goes there. The hash key is the
MD5 of the partition key, or an explicit hash key. Over many partition keys MD5 is even. Over few,
some hundred tenants or devices say, it is not, and one shard gets more than its part. Keys that you
choose can be even from the first one on:

` + "```sh" + `
runnel keys nth --count 4                              # the first four keys, from nothing
runnel keys allocate --existing-file keys.txt          # the next one beside those in use
runnel keys map --file keys.ndjson alice bob           # keys of names, kept in a file
runnel keys hash --shards 4 alice bob                  # where MD5 puts names
` + "```" + `

Send such a key as ExplicitHashKey. A tenant must keep its key for as long as its records are to stay
in order; ` + "`runnel keys map`" + ` sees to it, and ` + "`runnel keys release`" + ` frees the key of one that is gone.

## The order

The middle of the key space comes first, then the middles of its halves, of their halves, and so
on. On each level the halves take turns, and so do the halves of a half. The first 11 keys of a
space of 128, as the shards that they would be the first keys of:

` + "```" + `
{table}` + "```" + `

This is the van der Corput sequence: of 2^b keys, the n-th from 0 on is n+1 with its b bits in
reverse. ` + "`Space.Nth`" + ` computes it for any n, and ` + "`Allocator`" + ` gives the same keys if it begins
empty. With keys in use it gives the next key for the half that carries less, by the number of keys
or by their rates.

## Measurements

The first 1 to 4,000 keys on 2 to 100 shards of equal ranges, for four ways to choose them:

- **bit reversal**: the order above.
- **MD5 of 1, 2, 3, …**: the partition keys are these numbers in decimal, without explicit hash keys.
- **left halves first**: level by level, first the left half of every half above, then the right
  ones, both from the left to the right. It begins as bit reversal does, 64, 32, 96, 16, 80, 48, 112
  of 128, and goes on with 8, 40, 72, 104.
- **left to right**: level by level, from the left to the right.

Keys on the fullest shard less those on the emptiest, at worst:

{apart}
The fullest shard over the mean, at worst, from four keys a shard on:

{ratio}
![The difference, by the number of shards](balance.svg)

So:

- With bit reversal, 2, 4, 8, 16, 32 or 64 shards never differ by more than one key. Other numbers of
  shards cut through halves and differ by {reversal} keys at most; MD5 by {md5}.
- The fullest shard has at most {reversalRatio} times the mean, with MD5 {md5Ratio} times.
- **Left halves first is not bit reversal.** Both begin with the same eight keys. Then left halves first
  fills the left half of the space, and two shards differ by {halves} keys (at {halvesAt} keys). Bit
  reversal goes on with 72, 40 and 104, and its shards differ by one key.

A balance of keys is one of load only if the keys carry alike. For others, give their rates:
` + "`runnel keys allocate --existing 64=1500,32=20 --rate 300`" + `. No key can be split: one that is more
than a shard takes stays hot wherever it lies.
`

// The chart's frame, in pixels.
const (
	chartLeft, chartTop     = 56, 76
	chartWidth, chartHeight = 648, 300
	chartDoublings          = 10 // the highest line: 2^10 keys
)

// chartStyle has colours that colour-blind people can distinguish, for a light and a dark
// background.
const chartStyle = `<style>
.back{fill:#fff}text{fill:#24292f}.soft{fill:#57606a}.grid{stroke:#d8dee4}
.way{fill:none;stroke-width:1.8;stroke-linejoin:round}
.way0{stroke:#0072b2;stroke-width:2.4}.way1{stroke:#d55e00}.way2{stroke:#009e73}.way3{stroke:#8c6bb1}
@media(prefers-color-scheme:dark){
.back{fill:#0d1117}text{fill:#e6edf3}.soft{fill:#9da7b3}.grid{stroke:#30363d}
.way0{stroke:#56b4e9}.way1{stroke:#e69f00}.way2{stroke:#2fc99a}.way3{stroke:#b79ae0}
}
</style>`

// balanceChart is docs/balance.svg: for each way a line over the number of shards, of the worst
// difference, on a scale of doublings.
func balanceChart(all []measured) string {
	var svg strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&svg, format+"\n", args...) }
	x := func(shards int) float64 {
		return chartLeft + float64(shards-2)*chartWidth/(mostShards-2)
	}
	y := func(keys int) float64 {
		return chartTop + chartHeight - math.Log2(float64(keys))*chartHeight/chartDoublings
	}
	soft := func(x float64, y int, anchor, words string) {
		put(`<text class="soft" x="%.1f" y="%d" text-anchor="%s">%s</text>`, x, y, anchor, words)
	}
	put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 430" ` +
		`font-family="DejaVu Sans, Verdana, sans-serif" font-size="12">`)
	put(`<title>Keys on the fullest shard less those on the emptiest, at worst</title>`)
	put("%s", chartStyle)
	put(`<path class="back" d="M0 0h720v430H0z"/>`)
	put(`<text x="%d" y="24" font-size="15">Keys on the fullest shard less those on the emptiest, `+
		`at worst of 1 to %d keys</text>`, chartLeft, mostKeys)
	for doubling := range chartDoublings + 1 {
		at := y(1 << doubling)
		put(`<path class="grid" d="M%d %.1fh%d"/>`, chartLeft, at, chartWidth)
		soft(chartLeft-8, int(at)+4, "end", fmt.Sprint(1<<doubling))
	}
	for _, shards := range []int{2, 8, 16, 32, 48, 64, 80, 100} {
		put(`<path class="grid" d="M%.1f %dv5"/>`, x(shards), chartTop+chartHeight)
		soft(x(shards), chartTop+chartHeight+20, "middle", fmt.Sprint(shards))
	}
	soft(chartLeft+chartWidth/2, chartTop+chartHeight+42, "middle", "shards")
	at := chartLeft
	for i, m := range all {
		var points []string
		for shards := 2; shards <= mostShards; shards++ {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(shards), y(m.of[shards].apart)))
		}
		put(`<polyline class="way way%d" points="%s"/>`, i, strings.Join(points, " "))
		put(`<path class="way way%d" d="M%d 48h18"/>`, i, at)
		put(`<text x="%d" y="52">%s</text>`, at+26, m.name)
		at += 26 + 7*len([]rune(m.name)) + 22
	}
	put(`</svg>`)
	return svg.String()
}
