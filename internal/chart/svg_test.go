package chart_test

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel/internal/chart"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// drawing is the parsed picture of a skew.
type drawing struct {
	Text []string `xml:"text"`
	Bars []struct {
		Title string `xml:"title"`
		Rects []struct {
			Class  string  `xml:"class,attr"`
			X      float64 `xml:"x,attr"`
			Y      float64 `xml:"y,attr"`
			Width  float64 `xml:"width,attr"`
			Height float64 `xml:"height,attr"`
		} `xml:"rect"`
	} `xml:"g"`
	Lines []struct {
		Class string `xml:"class,attr"`
		D     string `xml:"d,attr"`
	} `xml:"path"`
}

func drawn(t rapid.TB, r chart.Skew, scale float64, unit string) (d drawing) {
	t.Helper()
	if err := xml.Unmarshal([]byte(r.SVG(scale, unit)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Bars stay in the frame, one beside the other, and are as high as their shards' weights; the
// heaviest keys are their part of it.
func TestSkewSVG(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := rapid.IntRange(1, 450).Draw(t, "shards")
		layout := keyspace.Uniform(shards)
		skew, _ := load.NewSkew(layout, 100)
		for i := range rapid.IntRange(0, 30).Draw(t, "adds") {
			at := rapid.IntRange(0, shards-1).Draw(t, "at")
			skew.Add(layout[at].Start, fmt.Sprint(i), rapid.Uint64Range(0, 1<<40).Draw(t, "weight"))
		}
		r := chart.Skew{Report: skew.Report(rapid.Uint64Range(0, 1<<42).Draw(t, "limit"), 3)}
		d := drawn(t, r, rapid.SampledFrom([]float64{1, 1e-9, 1e6}).Draw(t, "scale"), "")
		group := (shards + 199) / 200
		if want := (shards + group - 1) / group; len(d.Bars) != want {
			t.Fatalf("%d bars for %d shards", len(d.Bars), shards)
		}
		perWeight, end := 0.0, 76.0
		highs, hots := make([]float64, len(d.Bars)), make([]float64, len(d.Bars))
		for i, bar := range d.Bars {
			var weight uint64
			for _, shard := range r.Shards[i*group : min((i+1)*group, shards)] {
				weight = max(weight, shard.Weight)
			}
			var high, hot float64
			for _, rect := range bar.Rects {
				if high += rect.Height; rect.Class == "hot" {
					hot = rect.Height
				}
				if rect.X < end-0.02 && rect.Class == "rest" || rect.X+rect.Width > 704.01 ||
					rect.Y < 69.99 || rect.Y+rect.Height > 280.01 {
					t.Fatalf("bar %d lies at %+v, behind %g", i, rect, end)
				}
			}
			end = bar.Rects[0].X + bar.Rects[0].Width
			if weight == r.Peak && weight > 0 {
				perWeight = high / float64(weight)
			}
			if len(bar.Rects) == 0 || weight == 0 && high != 0 {
				t.Fatalf("bar %d: %+v", i, bar)
			}
			highs[i], hots[i] = high, hot
		}
		// A limit is drawn up to twice the peak, and the axis ends up to half as much above it.
		if r.Peak > 0 && perWeight*float64(r.Peak) < 210*0.33 {
			t.Fatalf("the highest bar has %g of 210", perWeight*float64(r.Peak))
		}
		for i := range d.Bars {
			highest := i * group
			for at := highest; at < min((i+1)*group, shards); at++ {
				if r.Shards[at].Weight > r.Shards[highest].Weight {
					highest = at
				}
			}
			var hot uint64
			for _, name := range r.Hot {
				if name.Shard == highest {
					hot += name.AtLeast()
				}
			}
			weight := r.Shards[highest].Weight
			if math.Abs(highs[i]-perWeight*float64(weight)) > 0.03 ||
				math.Abs(hots[i]-perWeight*float64(hot)) > 0.03 {
				t.Fatalf("bar %d is %g high, %g of it hot; want %g and %g", i, highs[i], hots[i],
					perWeight*float64(weight), perWeight*float64(hot))
			}
		}
	})
}

// The labels are numbers with commas, the unit, and names as text; the limit is drawn if it is
// near.
func TestSkewSVGWords(t *testing.T) {
	r := chartOf(t, 4, 10, 0, 80, 10)
	r.Names = []string{"", "", "<3>&\x01"}
	d := drawn(t, r, 1000, "records/s")
	words := strings.Join(d.Text, "|")
	for _, want := range []string{
		"4 shards: peak to mean 3.20, Gini 0.60", "the 2 heaviest keys", "what a shard takes",
		"|20,000|", "|80,000|records/s|", "|<3>&\ufffd|", "|3", "as wide as its part",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in %s", want, words)
		}
	}
	if title := d.Bars[2].Title; title != "shard <3>&\ufffd: 80,000 records/s" {
		t.Errorf("the title is %q", title)
	}
	var limits []string
	for _, line := range d.Lines {
		if line.Class == "limit" {
			limits = append(limits, line.D)
		}
	}
	if len(limits) != 2 || limits[1] != "M76 148.8H704" { // in the legend, and at 50 of 80
		t.Errorf("the limit is drawn as %q", limits)
	}
	r.Limit = 160
	d = drawn(t, r, 1, "")
	if line := d.Lines[len(d.Lines)-1]; line.Class != "limit" || line.D != "M76 112.0H704" {
		t.Errorf("a limit of twice the peak: %+v", line)
	}
	r.Limit = 161
	if words := strings.Join(drawn(t, r, 1, "").Text, "|"); !strings.Contains(words,
		"|a shard takes 161 |") {
		t.Errorf("a far limit is not written: %s", words)
	}
	r.Limit = 0
	if words := strings.Join(drawn(t, r, 1, "").Text, "|"); strings.Contains(words, "takes") {
		t.Errorf("a limit is written: %s", words)
	}
	many := drawn(t, chartOf(t, 1000, 1), 1, "")
	if words := strings.Join(many.Text, "|"); !strings.Contains(words, "|0|2¹²⁷|2¹²⁸") ||
		!strings.Contains(words, "of each 5 neighbours") ||
		!strings.Contains(words, "1,000 shards") || !strings.Contains(words, "the heaviest key|") {
		t.Errorf("of many: %s", words)
	}
	if words := strings.Join(drawn(t, chartOf(t, 1), 1, "").Text, "|"); !strings.HasPrefix(words,
		"1 shard: peak to mean 1.00, Gini 0.00|other keys|") {
		t.Errorf("of one: %s", words)
	}
}
