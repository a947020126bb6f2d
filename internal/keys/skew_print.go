package keys

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/chart"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/measure"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/shardid"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/load"
)

// shownSkew is the result of `keys skew` in the form that is printed.
type shownSkew struct {
	flags   *skewFlags
	files   bool
	ids     map[keyspace.Range]runnel.ShardID // of a stream's shards; nil for those of new streams
	seen    *measure.Load
	reports []chart.Skew   // of the layouts
	alone   []load.HotName // each alone is above a shard's limit
}

// skewLine is a skew as it is printed. Loads are bytes or records.
type skewLine struct {
	Stream  string       `json:"stream,omitempty"`
	Unit    string       `json:"unit"`
	Total   float64      `json:"total"`
	Records uint64       `json:"records"`           // of Kinesis, or lines
	Bytes   uint64       `json:"bytes"`             // of these
	Seconds float64      `json:"seconds,omitempty"` // in which it arrives, if that is known
	Limit   float64      `json:"limit,omitempty"`   // of a shard in that time
	Layouts []skewLayout `json:"layouts"`
	Hot     []skewKey    `json:"hot"`

	shown   *shownSkew
	columns int // of the text
}

// skewLayout is the distribution of a load over the shards of a layout.
type skewLayout struct {
	Peak       float64     `json:"peak"`
	Mean       float64     `json:"mean"`
	PeakToMean float64     `json:"peakToMean"`
	Gini       float64     `json:"gini"`
	OverLimit  int         `json:"overLimit"` // shards
	Shards     []skewShard `json:"shards"`
}

type skewShard struct {
	ShardID string  `json:"shardId"`
	Load    float64 `json:"load"`
}

// skewKey is one of the heaviest keys; its true load is from AtLeast to AtMost.
type skewKey struct {
	Key     string  `json:"key"`
	HashKey string  `json:"hashKey"`
	ShardID string  `json:"shardId,omitempty"` // of one layout
	AtLeast float64 `json:"atLeast"`
	AtMost  float64 `json:"atMost"`
	Alone   bool    `json:"alone"` // above a shard's limit: no split will help
}

// take makes the reports of the observed load.
func (s *shownSkew) take(seen *measure.Load) {
	s.seen = seen
	limit := uint64(0)
	if seen.Took > 0 {
		limit = max(1, uint64(s.flags.Target*s.flags.Limit(seen.Took)))
	}
	for i, skew := range seen.Skews {
		top := s.flags.Top
		if i == 0 {
			top = measure.Counters
		}
		report := chart.Skew{Report: skew.Report(limit, top)}
		for at := range report.Shards {
			report.Names = append(report.Names, s.short(report, at))
		}
		s.reports = append(s.reports, report)
	}
	first := &s.reports[0]
	for _, hot := range first.Hot {
		if hot.Alone {
			s.alone = append(s.alone, hot)
		}
	}
	first.Hot = first.Hot[:min(s.flags.Top, len(first.Hot))]
	for len(first.Hot) > 0 && unsure(first.Hot[len(first.Hot)-1]) {
		first.Hot = first.Hot[:len(first.Hot)-1]
	}
}

// unsure reports whether most of a key's counted weight may belong to other keys.
func unsure(n load.HotName) bool { return n.Error > n.AtLeast() }

// id is the id of a shard.
func (s *shownSkew) id(report chart.Skew, shard int) string {
	if id, known := s.ids[report.Shards[shard].Range]; known {
		return string(id)
	}
	return shardid.Of(uint32(shard))
}

// short is the number in a shard's id.
func (s *shownSkew) short(report chart.Skew, shard int) string {
	return shardid.Short(s.id(report, shard))
}

// amount is a weight in bytes or records.
func (s *shownSkew) amount(weight uint64) float64 {
	if s.flags.By == "records" {
		return float64(weight) / measure.RecordWeight
	}
	return float64(weight)
}

// format formats a weight, as a rate if the time is known.
func (s *shownSkew) format(weight uint64) string {
	if s.seen.Took > 0 {
		return s.flags.PerSecond(weight, s.seen.Took)
	}
	return s.flags.Flags.Amount(float64(weight))
}

// scale returns the factor that converts a weight to the unit of a picture.
func (s *shownSkew) scale() (scale float64, unit string) {
	if scale = 1; s.seen.Took > 0 {
		scale = 1 / s.seconds()
	}
	switch peak := scale * float64(s.reports[0].Peak); {
	case s.flags.By == "records":
		scale, unit = scale/measure.RecordWeight, "records"
	case peak < 1<<10:
		unit = "B"
	case peak < 1<<20:
		scale, unit = scale/(1<<10), "KiB"
	default:
		scale, unit = scale/(1<<20), "MiB"
	}
	if s.seen.Took > 0 {
		unit += "/s"
	}
	return scale, unit
}

func (s *shownSkew) seconds() float64 { return s.seen.Took.Seconds() }

// printSkew prints the skew.
func printSkew(con *console.Console, s *shownSkew) error {
	line := s.line()
	line.columns = con.Columns()
	out := rows.NewVerbatim(con.Out, con.JSON())
	return errors.Join(out.Report(line), out.Flush())
}

// WriteText implements rows.Report.
func (l skewLine) WriteText(w io.Writer) error {
	s, text := l.shown, &strings.Builder{}
	s.heading(text)
	if len(s.reports) > 1 {
		s.compare(text)
	} else {
		only := s.reports[0]
		text.WriteString(only.Bars(l.columns, s.format))
		fmt.Fprintf(text, "peak to mean %.2f, Gini %.2f", only.PeakToMean, only.Gini)
		if only.Over > 0 {
			fmt.Fprintf(text, "; %s above the limit", shardCount(only.Over))
		}
		text.WriteString("\n")
	}
	s.hot(text)
	s.advice(text)
	_, err := io.WriteString(w, text.String())
	return err
}

func (s *shownSkew) heading(text *strings.Builder) {
	f, seen := s.flags, s.seen
	switch {
	case f.weight != "":
		fmt.Fprintf(text, "seen: %s in %s lines", f.Flags.Amount(seen.Weight()),
			console.Thousands(seen.Records))
	case f.names:
		fmt.Fprintf(text, "seen: %s keys", console.Thousands(seen.Records))
	default:
		fmt.Fprintf(text, "seen: %s records, %s", console.Thousands(seen.Records),
			console.Bytes(float64(seen.Bytes)))
	}
	switch {
	case f.rate != "":
		fmt.Fprintf(text, ", as %s", s.format(s.reports[0].Total))
	case seen.Took > time.Second:
		fmt.Fprintf(text, " in %s", seen.Took.Round(time.Second/10))
	case seen.Took > 0:
		fmt.Fprintf(text, " in %s", seen.Took)
	}
	if seen.Took > 0 {
		fmt.Fprintf(text, "; a shard takes %s", s.format(s.reports[0].Limit))
	}
	text.WriteString("\n")
}

func shardCount(n int) string {
	if n == 1 {
		return "1 shard"
	}
	return console.Thousands(n) + " shards"
}

// compare prints the layouts as lines of a table.
func (s *shownSkew) compare(text *strings.Builder) {
	fmt.Fprintf(text, "%7s  %15s  %15s  %9s  %5s", "SHARDS", "PEAK", "MEAN", "PEAK/MEAN", "GINI")
	if s.seen.Took > 0 {
		fmt.Fprintf(text, "  %10s", "OVER LIMIT")
	}
	text.WriteString("\n")
	for _, r := range s.reports {
		fmt.Fprintf(text, "%7d  %15s  %15s  %9.2f  %5.2f", len(r.Shards), s.format(r.Peak),
			s.format(uint64(r.Mean)), r.PeakToMean, r.Gini)
		if s.seen.Took > 0 {
			fmt.Fprintf(text, "  %10d", r.Over)
		}
		text.WriteString("\n")
	}
}

// hot prints the heaviest keys as lines of a table.
func (s *shownSkew) hot(text *strings.Builder) {
	r := s.reports[0]
	switch {
	case r.Total == 0 || s.flags.Top == 0:
		return
	case len(r.Hot) == 0:
		fmt.Fprintf(text, "no key stands out: none has more than %.2f%% of the load\n",
			100*float64(r.AtMost)/float64(r.Total))
		return
	}
	fmt.Fprintf(text, "  SHARE  %17s  ", "LOAD")
	if len(s.reports) == 1 {
		text.WriteString("SHARD  ")
	}
	text.WriteString("KEY\n")
	for _, hot := range r.Hot {
		load := s.format(hot.AtLeast())
		if hot.Error > 0 {
			load = "≥ " + load
		}
		fmt.Fprintf(text, "%6.2f%%  %17s  ", 100*float64(hot.AtLeast())/float64(r.Total), load)
		if len(s.reports) == 1 {
			fmt.Fprintf(text, "%5s  ", r.Names[hot.Shard])
		}
		fmt.Fprintf(text, "%s\n", printable(hot.Name))
	}
}

// headroom is the highest load of one key, as a fraction of a shard's limit, in a shard that other
// keys use too.
const headroom = 0.7

// advice prints a remedy for each key that alone is above a shard's limit.
func (s *shownSkew) advice(text *strings.Builder) {
	for _, hot := range s.alone[:min(len(s.alone), s.flags.Top)] {
		times := float64(hot.AtLeast()) / float64(s.reports[0].Limit)
		parts := int(math.Ceil(times / headroom))
		fmt.Fprintf(text, "%q alone is %.2f times what a shard takes: no split of shards will "+
			"help.\n  Split the key: of %d keys, %q to %q, each has %.2f of a shard,\n"+
			"  and keeps an order of its own.\n",
			hot.Name, times, parts, hot.Name+"-1", fmt.Sprintf("%s-%d", hot.Name, parts),
			times/float64(parts))
	}
	if more := len(s.alone) - s.flags.Top; more > 0 {
		fmt.Fprintf(text, "%d more keys are each more than a shard takes: see --top %d\n", more,
			len(s.alone))
	}
}

// line is the skew for --output json.
func (s *shownSkew) line() skewLine {
	line := skewLine{
		shown:  s,
		Stream: s.flags.stream, Unit: s.flags.By, Total: s.amount(s.reports[0].Total),
		Records: s.seen.Records, Bytes: s.seen.Bytes,
		Seconds: s.seconds(), Limit: s.amount(s.reports[0].Limit), Hot: []skewKey{},
	}
	for _, r := range s.reports {
		layout := skewLayout{
			Peak: s.amount(r.Peak), Mean: s.amount(1) * r.Mean, PeakToMean: r.PeakToMean,
			Gini: r.Gini, OverLimit: r.Over,
		}
		for i, shard := range r.Shards {
			layout.Shards = append(layout.Shards,
				skewShard{ShardID: s.id(r, i), Load: s.amount(shard.Weight)})
		}
		line.Layouts = append(line.Layouts, layout)
	}
	for _, hot := range s.reports[0].Hot {
		key := skewKey{
			Key: hot.Name, HashKey: hot.Hash.String(), AtLeast: s.amount(hot.AtLeast()),
			AtMost: s.amount(hot.Weight), Alone: hot.Alone,
		}
		if len(s.reports) == 1 {
			key.ShardID = s.id(s.reports[0], hot.Shard)
		}
		line.Hot = append(line.Hot, key)
	}
	return line
}
