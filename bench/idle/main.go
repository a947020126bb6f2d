// Command idle measures a server that has nothing to do: the time from its start to its first
// answer, and its memory two seconds later. It prints Markdown. `make bench-idle` runs it, and
// bench/README.md has its output.
//
// Each round starts every server once, one at a time, on an empty folder. All of them then stay
// idle until the memory of the last one has been read. So a start has the processors to itself, and
// several binaries, such as those of two commits, have their turns in the same run. The medians
// count.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

// Config has the settings of a measurement.
type Config struct {
	// Rounds is the number of starts of each server. Default 20.
	Rounds int
	// Runnel has the binaries of runnel to measure. Default bin/runnel.
	Runnel []string
	// Ferrokinesis is the binary that bench/install makes. Default .tools/peers/bin/ferrokinesis;
	// without the file the table has no row of it.
	Ferrokinesis string
	// Idle is the time from the first answer to the look at the memory. Default 2 s.
	Idle time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "idle:", err)
		stop()
		os.Exit(1)
	}
}

// parse reads the command line.
func parse(args []string) (Config, error) {
	var cfg Config
	flags := flag.NewFlagSet("idle", flag.ContinueOnError)
	flags.IntVar(&cfg.Rounds, "rounds", 20, "the number of starts of each server")
	runnel := flags.String("runnel", "bin/runnel", "the binaries of runnel, with commas between")
	flags.StringVar(&cfg.Ferrokinesis, "ferrokinesis", ".tools/peers/bin/ferrokinesis",
		"the binary of ferrokinesis")
	flags.DurationVar(&cfg.Idle, "idle", 2*time.Second,
		"the time from the first answer to the look at the memory")
	err := flags.Parse(args)
	cfg.Runnel = strings.Split(*runnel, ",")
	if err == nil && (cfg.Rounds < 1 || cfg.Idle < 0) {
		err = fmt.Errorf("-rounds is %d and -idle is %v: want at least 1 and 0", cfg.Rounds,
			cfg.Idle)
	}
	return cfg, err
}

func run(ctx context.Context, args []string, w io.Writer) error {
	cfg, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	all := servers(cfg)
	for n := range cfg.Rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", n+1, cfg.Rounds)
		if err := round(ctx, cfg, all); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, report(cfg, all))
	return err
}

// round starts every server and reads the memory of each.
func round(ctx context.Context, cfg Config, all []*server) (err error) {
	var started []*running
	defer func() {
		for _, p := range started {
			err = errors.Join(err, p.End())
		}
	}()
	for _, s := range all {
		p, err := start(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		started = append(started, p)
		s.started = append(s.started, float64(p.Took)/float64(time.Millisecond))
		s.cpu = append(s.cpu, float64(p.cpu)/float64(time.Millisecond))
		if err := process.Pause(ctx, 100*time.Millisecond); err != nil { // the rest of its start
			return err
		}
	}
	for i, p := range started {
		if err := process.Pause(ctx, time.Until(p.Answered.Add(cfg.Idle))); err != nil {
			return err
		}
		m, err := p.memory()
		if err != nil {
			return err
		}
		all[i].memory = append(all[i].memory, m)
	}
	return nil
}
