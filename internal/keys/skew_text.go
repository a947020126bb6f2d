package keys

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/rows"
)

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
