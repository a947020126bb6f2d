package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// report gives everything as Markdown.
func report(cfg Config, all []*server, m *measured) string {
	w := &strings.Builder{}
	fmt.Fprintf(w, "Medians of %d rounds, %v of calls a row; %d processors (%s), shared by the "+
		"server and the client. The disk alone: %s MB/s in writes of 500 KiB, each synced; a "+
		"write of 4 KiB and its sync take %d us.\n", cfg.Rounds, cfg.Row, runtime.NumCPU(),
		runtime.GOARCH, figure(m.disk.megabytes), m.disk.sync.Microseconds())
	for _, v := range []via{viaSDK, viaPrepared} {
		title := fmt.Sprintf("Records a second, %s; 16 shards, batches of 500 with 8 in flight; "+
			"PutRecord with 1 KiB:", v)
		grid(w, title, all, rates(), func(s *server, r row) string {
			return shown(m.median(s.name, r, v))
		})
	}
	grid(w, "Start and memory (resident), on an empty folder:", withoutBare(all), states(),
		func(s *server, r row) string { return shown(m.median(s.name, r, noClient)) })
	for _, v := range []via{viaSDK, viaPrepared} {
		title := fmt.Sprintf("Conditional updates a second, one counter a call in flight, %s:", v)
		grid(w, title, all, updates(), func(s *server, r row) string {
			return shown(m.median(s.name, r, v))
		})
	}
	for _, own := range []string{runnelDurable, runnelMemory, bareName} {
		columns := append(rates(), updates()...)
		if own == bareName {
			columns = updates()
		}
		title := own + ", as a multiple of each peer, AWS SDK:"
		grid(w, title, peersOf(all), columns, func(s *server, r row) string {
			return shown(m.ratio(own, s.name, r, viaSDK))
		})
	}
	verdicts(w, all, m)
	for _, note := range m.notes {
		fmt.Fprintf(w, "\nNote: %s\n", strings.Join(strings.Fields(note), " "))
	}
	return w.String()
}

func rates() []row {
	return []row{putKiB, getKiB, putSmall, getSmall, putSingle8, putSingle64}
}

func updates() []row { return []row{update8, update64} }

func states() []row { return []row{firstAnswer, idleMemory, fullMemory, fullPayload} }

func peersOf(all []*server) []*server {
	return slices.DeleteFunc(withoutBare(all), func(s *server) bool {
		return strings.HasPrefix(s.name, "runnel")
	})
}

func withoutBare(all []*server) []*server {
	return slices.DeleteFunc(slices.Clone(all), func(s *server) bool { return s.bare })
}

// grid prints a table with a line for each server and a column for each row. It leaves out servers
// without figures, and prints no table if all lack figures.
func grid(
	w *strings.Builder, title string, all []*server, columns []row, value func(*server, row) string,
) {
	var lines []string
	for _, s := range all {
		line, empty := "| "+s.name+" |", true
		for _, c := range columns {
			text := value(s, c)
			line += " " + text + " |"
			empty = empty && text == missing
		}
		if !empty {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n\n| |", title)
	for _, c := range columns {
		fmt.Fprintf(w, " %s |", c)
	}
	fmt.Fprintf(w, "\n|%s\n%s\n", strings.Repeat("---|", len(columns)+1),
		strings.Join(lines, "\n"))
}

// verdicts prints the goals of the chosen servers. A missing figure shows as "–".
func verdicts(w *strings.Builder, all []*server, m *measured) {
	fmt.Fprintf(w, "\nGoals:\n\n| goal | | %s | %s |\n|---|---|---|---|\n", viaSDK, viaPrepared)
	chosen := func(name string) bool {
		return slices.ContainsFunc(all, func(s *server) bool { return s.name == name })
	}
	for _, g := range goals() {
		switch {
		case !chosen(g.own) || g.peer != "" && !chosen(g.peer):
		case g.peer == "":
			fmt.Fprintf(w, "| %s: %s | below %s | %s | |\n", g.own, g.row, figure(g.value),
				g.verdict(m, noClient))
		default:
			fmt.Fprintf(w, "| %s: %s, beside %s | at least %s times | %s | %s |\n", g.own, g.row,
				g.peer, figure(g.value), g.verdict(m, viaSDK), g.verdict(m, viaPrepared))
		}
	}
}

func (g goal) verdict(m *measured, v via) string {
	value, met, known := g.reached(m, v)
	switch {
	case !known:
		return missing
	case met:
		return figure(value) + ", met"
	default:
		return figure(value) + ", **not met**"
	}
}

const missing = "–"

func shown(value float64, known bool) string {
	if !known {
		return missing
	}
	return figure(value)
}

// figure writes a number with three significant digits and commas between thousands.
func figure(value float64) string {
	if value != 0 && math.Abs(value) < 100 {
		return strconv.FormatFloat(value, 'g', 3, 64)
	}
	step := math.Pow(10, max(0, math.Floor(math.Log10(max(1, math.Abs(value))))-2))
	text := strconv.FormatFloat(math.Round(value/step)*step, 'f', 0, 64)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
