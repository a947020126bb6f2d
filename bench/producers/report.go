package main

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
)

// cell is a row of a table: one way, with one key field and one setting of the limits.
type cell struct{ field, limits, way string }

// measured has all figures of a run.
type measured struct {
	inputs   []input
	figures  map[cell][]figures
	notes    []string
	ownFault error
}

func newMeasured() *measured { return &measured{figures: map[cell][]figures{}} }

func (m *measured) add(c cell, got figures, err error) {
	if err == nil {
		m.figures[c] = append(m.figures[c], got)
		return
	}
	m.notes = append(m.notes,
		fmt.Sprintf("%s, by %s, limits %s: %v", c.way, c.field, c.limits, err))
	if c.way != wayKPL {
		m.ownFault = errors.New("a client failed, see the notes")
	}
}

// median returns the median of a figure; ok is false if there is none.
func (m *measured) median(c cell, of func(figures) float64) (value float64, ok bool) {
	var all []float64
	for _, f := range m.figures[c] {
		all = append(all, of(f))
	}
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2, true
}

// column is a figure and its title.
type column struct {
	title string
	of    func(figures) float64
}

func rate(f figures) float64    { return float64(f.Records) / f.Seconds }
func perCore(f figures) float64 { return float64(f.Records) / max(f.cpu.Seconds(), 0.01) }
func memory(f figures) float64  { return f.memory }

// callsFor returns the number of calls for one pass over the input's records. It is infinite for a
// client that has not put all records, since its number is not known.
func callsFor(in input) func(figures) float64 {
	return func(f figures) float64 {
		if f.Records%in.records != 0 {
			return math.Inf(1)
		}
		return float64(f.calls) * float64(in.records) / float64(f.Records)
	}
}

// report gives everything as Markdown.
func report(cfg Config, m *measured) string {
	w := &strings.Builder{}
	fmt.Fprintf(w, "Medians of %d rounds; %d processors (%s), shared by the server and the "+
		"client; TLS; %v added to every call; %d shards. The events %d times, for at most %v; "+
		"calls are those for the %d events once, of a client that has put all.\n",
		cfg.Rounds, runtime.NumCPU(), runtime.GOARCH, cfg.Latency,
		cfg.Shards, cfg.Passes, cfg.Most, m.inputs[0].records)
	for _, limits := range cfg.Limits {
		for _, in := range m.inputs {
			table(w, cfg, m, in, limits)
		}
	}
	goals(w, cfg, m)
	for _, note := range m.notes {
		fmt.Fprintf(w, "\nNote: %s\n", strings.Join(strings.Fields(note), " "))
	}
	return w.String()
}

func table(w *strings.Builder, cfg Config, m *measured, in input, limits string) {
	title := "nothing limited"
	if limits != "off" {
		title = "within the limits of AWS's shards"
	}
	fmt.Fprintf(w, "\nBy `%s` (%d keys, the commonest with %d %% of %d events, %.1f MB), %s:\n\n",
		in.field, in.keys, 100*in.hottest/in.records, in.records, float64(in.bytes)/1e6, title)
	columns := []column{
		{"records/s", rate},
		{"calls", callsFor(in)},
		{"records/s per core of the client", perCore},
		{"memory, MB", memory},
	}
	fmt.Fprint(w, "| | keeps |")
	for _, c := range columns {
		fmt.Fprintf(w, " %s |", c.title)
	}
	fmt.Fprintf(w, "\n|%s\n", strings.Repeat("---|", len(columns)+2))
	for _, way := range ways(cfg) {
		fmt.Fprintf(w, "| %s | %s |", way.name, way.ordered)
		for _, c := range columns {
			fmt.Fprintf(w, " %s |", shown(m.median(cell{in.field, limits, way.name}, c.of)))
		}
		fmt.Fprintln(w)
	}
}

// goals prints the goals for the default order, for the measured inputs and limits.
func goals(w *strings.Builder, cfg Config, m *measured) {
	fmt.Fprint(w, "\nGoals for the default:\n\n| goal | | reached |\n|---|---|---|\n")
	for _, in := range m.inputs {
		for _, limits := range cfg.Limits {
			own := cell{in.field, limits, wayKey}
			against := func(what, peer string, low float64, of func(figures) float64) {
				a, okA := m.median(own, of)
				b, okB := m.median(cell{in.field, limits, peer}, of)
				fmt.Fprintf(w, "| by `%s`, limits %s: %s, beside %s | at least %.2f times | %s |\n",
					in.field, limits, what, peer, low, verdict(a/b, okA && okB, a/b >= low))
			}
			if limits != "off" {
				against("records/s", wayNone, 0.9, rate)
			}
			against("records/s per core", wayKPL, 1, perCore)
			if in.field == "type" && limits == "off" {
				floor := float64((in.records + callRecords - 1) / callRecords)
				calls, ok := m.median(own, callsFor(in))
				fmt.Fprintf(w, "| by `type`, limits off: calls | at most %.0f, %d records a call "+
					"without order | %s |\n", floor, callRecords,
					verdict(calls, ok, calls <= floor))
			}
		}
	}
}

func verdict(value float64, known, met bool) string {
	switch {
	case !known:
		return "–"
	case met:
		return shown(value, true) + ", met"
	default:
		return shown(value, true) + ", not met"
	}
}

// shown writes a number with three significant digits, or "–".
func shown(value float64, ok bool) string {
	switch {
	case !ok || math.IsInf(value, 0):
		return "–"
	case value >= 1000:
		unit := 1.0
		for value/unit >= 1000 {
			unit *= 10
		}
		return thousands(int(value/unit+0.5) * int(unit))
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	default:
		return fmt.Sprintf("%.3g", value)
	}
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
