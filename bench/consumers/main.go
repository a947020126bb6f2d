// Command consumers measures the readers of a backlog beside each other: a worker of package
// consumer, and the Java KCL. It prints Markdown: records per second of processor time and peak
// memory, for records of 1 KiB and of 100 B, for aggregates, and for a thousand shards.
// `make bench-consumers` runs it, and bench/README.md has its output.
//
// One server has one stream for each load. Each reader is a process of its own, with a lease table
// of its own, and reads the whole stream. Its handler counts. The first tenth of the records warms
// the reader up; processor time counts from there to the last record, memory from the start.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

// Config has the settings of a measurement.
type Config struct {
	// Rounds is the number of measurements; medians count. Default 5.
	Rounds int
	// Java is the number of measurements of the Java KCL, which takes half a minute to get its
	// leases. Default 5.
	Java int
	// Only chooses loads by name. Default all.
	Only *regexp.Regexp
	// Runnel is the binary that `make build` makes. Default bin/runnel.
	Runnel string
	// Tools is the folder into which interop/install puts the KCL. Default .tools.
	Tools string
}

func main() { process.Main("consumers", asReader, read, run) }

// parse reads the command line.
func parse(args []string) (Config, error) {
	var cfg Config
	flags := flag.NewFlagSet("consumers", flag.ContinueOnError)
	flags.IntVar(&cfg.Rounds, "rounds", 5, "the number of rounds")
	flags.IntVar(&cfg.Java, "java", 5, "the number of rounds of the Java KCL")
	only := flags.String("only", "", "measure only the loads with a name that matches this "+
		"expression")
	flags.StringVar(&cfg.Runnel, "runnel", "bin/runnel", "the binary of runnel")
	flags.StringVar(&cfg.Tools, "tools", ".tools", "the folder of the installed KCL")
	err := flags.Parse(args)
	if err != nil {
		return cfg, err
	}
	if cfg.Only, err = regexp.Compile(*only); err != nil {
		return cfg, fmt.Errorf("-only: %w", err)
	}
	if cfg.Rounds < 1 || cfg.Java < 0 || cfg.Java > cfg.Rounds {
		return cfg, fmt.Errorf("-rounds is %d and -java is %d: want 1 or more, and at most as "+
			"many of Java's", cfg.Rounds, cfg.Java)
	}
	if _, err := os.Stat(cfg.Runnel); err != nil {
		return cfg, fmt.Errorf("%w: make build makes it", err)
	}
	return cfg, nil
}

// run measures all readers and writes the report. It returns an error if a reader fails.
func run(ctx context.Context, args []string, w io.Writer) (err error) {
	cfg, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	readers, remove, err := readers(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	begin := time.Now()
	m := measured{}
	for _, l := range loads() {
		if !cfg.Only.MatchString(l.name) {
			continue
		}
		if err := m.measure(ctx, cfg, l, readers, begin); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	_, err = io.WriteString(w, m.report(cfg))
	return err
}
