package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runnel-stream/runnel/bench/internal/figures"
)

// report returns the table.
func report(cfg Config, all []*server) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Medians of %d starts, with the quickest and the slowest one; the memory is "+
		"that %v after the first answer.\n\n", cfg.Rounds, cfg.Idle)
	out.WriteString("| | start to first answer, ms | processor time until then, ms | " +
		"memory (VmRSS), MB | its own (RssAnon) | the binary's (RssFile) |\n" +
		"|---|---|---|---|---|---|\n")
	for _, s := range all {
		of := func(part func(memory) float64) float64 {
			var values []float64
			for _, m := range s.memory {
				values = append(values, part(m))
			}
			return figures.Median(values)
		}
		fmt.Fprintf(&out, "| %s | %.1f (%.1f to %.1f) | %.1f | %.1f | %.1f | %.1f |\n", s.name,
			figures.Median(s.started), slices.Min(s.started), slices.Max(s.started),
			figures.Median(s.cpu),
			of(func(m memory) float64 { return m.all }),
			of(func(m memory) float64 { return m.own }),
			of(func(m memory) float64 { return m.file }))
	}
	return out.String()
}
