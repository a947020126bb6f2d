package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel/bench/internal/plainbody"
	"github.com/runnel-stream/runnel/bench/internal/process"
)

// cell is one row of the table.
type cell struct{ load, reader string }

// measured has all figures of a run.
type measured map[cell][]figures

// measure fills a stream, and runs the readers of it in turn.
func (m measured) measure(
	ctx context.Context, cfg Config, l load, readers []reader, begin time.Time,
) (err error) {
	server, err := process.Serve(ctx, cfg.Runnel, "--stream",
		fmt.Sprintf("%s:%d", stream, l.shards))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.End()) }()
	sdk, err := config.LoadDefaultConfig(ctx, config.WithRegion("us-east-1"),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("any", "any", "")))
	if err != nil {
		return err
	}
	sdk.BaseEndpoint = aws.String("http://" + server.Address)
	sdk.RetryMaxAttempts = 1 // a repeated call may put its records twice
	sdk.HTTPClient = &http.Client{Transport: plainbody.Transport{Next: http.DefaultTransport}}
	if err := fill(ctx, kinesis.NewFromConfig(sdk), l); err != nil {
		return err
	}
	for round := range cfg.Rounds {
		for i, r := range readers {
			if r.java && (!l.java || round >= cfg.Java) {
				continue
			}
			fmt.Fprintf(os.Stderr, "%4.0fs  round %d  %s  %s\n", time.Since(begin).Seconds(),
				round+1, l.name, r.name)
			got, err := r.measure(ctx, server, fmt.Sprintf("reader-%d-%d", i, round), l)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			c := cell{l.name, r.name}
			m[c] = append(m[c], got)
		}
	}
	return nil
}

func perCPU(f figures) float64    { return float64(f.records) / max(f.cpu.Seconds(), 0.01) }
func perSecond(f figures) float64 { return float64(f.records) / f.wall.Seconds() }
func memory(f figures) float64    { return f.memory }

// spread returns the median of a figure, and its smallest and largest values.
func (m measured) spread(c cell, of func(figures) float64) (median, least, most float64) {
	var all []float64
	for _, f := range m[c] {
		all = append(all, of(f))
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2, all[0], all[len(all)-1]
}

// report gives everything as Markdown.
func (m measured) report(cfg Config) string {
	w := &strings.Builder{}
	fmt.Fprintf(w, "Medians of %d rounds, of %d with Java (smallest to largest); %d processors "+
		"(%s), shared by the server and the reader.\n\n", cfg.Rounds, cfg.Java,
		runtime.NumCPU(), runtime.GOARCH)
	fmt.Fprint(w, "| backlog | reader | records a CPU-second | records/s | memory, MB |\n"+
		"|---|---|---|---|---|\n")
	for _, l := range loads() {
		for _, name := range []string{nameOwn, nameKCL2, nameKCL3} {
			c := cell{l.name, name}
			if len(m[c]) == 0 {
				continue
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", l.name, name, m.shown(c, perCPU),
				m.shown(c, perSecond), m.shown(c, memory))
		}
	}
	fmt.Fprint(w, "\n| backlog | goal | reached |\n|---|---|---|\n")
	for _, l := range loads() {
		own := cell{l.name, nameOwn}
		if len(m[own]) == 0 {
			continue
		}
		peak, _, _ := m.spread(own, memory)
		fmt.Fprintf(w, "| %s | at most %.0f MB | %.0f |\n", l.name, l.memory, peak)
		if !l.java || cfg.Java == 0 {
			continue
		}
		mine, _, _ := m.spread(own, perCPU)
		second, _, _ := m.spread(cell{l.name, nameKCL2}, perCPU)
		third, _, _ := m.spread(cell{l.name, nameKCL3}, perCPU)
		fmt.Fprintf(w, "| %s | a CPU-second, beside the faster KCL: at least 3 times | %.1f |\n",
			l.name, mine/max(second, third))
	}
	return w.String()
}

// shown writes a figure with its spread.
func (m measured) shown(c cell, of func(figures) float64) string {
	median, least, most := m.spread(c, of)
	return fmt.Sprintf("%s (%s to %s)", number(median), number(least), number(most))
}

// number writes a number of at most three significant digits above 1,000.
func number(value float64) string {
	n := int(value + 0.5)
	unit := 1
	for n/unit >= 1000 {
		unit *= 10
	}
	n = (n + unit/2) / unit * unit
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
