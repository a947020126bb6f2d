package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"
)

// Config says how long, how often and with what to measure.
type Config struct {
	// Row is how long calls are begun for one row; those in flight then are waited for.
	// Default 1 s, or RUNNEL_BENCH_SECONDS seconds.
	Row time.Duration
	// Rounds is how often everything is measured. Default 3.
	Rounds int
	// Only chooses servers by name; those that do not match are left out. Default all.
	Only *regexp.Regexp
	// NoFlush leaves out the wait, before each turn, until the disk has taken what the turn
	// before has left. Default false.
	NoFlush bool
	// Dir is where the servers' folders are made: the disk that is measured. Default the
	// system's folder for temporary files.
	Dir string
	// Runnel is the binary that `make build` makes. Default bin/runnel.
	Runnel string
	// Tools is where bench/install and interop/install put the peers. Default .tools.
	Tools string
}

// parse reads the command line.
func parse(args []string) (Config, error) {
	seconds, err := strconv.ParseFloat(os.Getenv("RUNNEL_BENCH_SECONDS"), 64)
	if err != nil || seconds <= 0 {
		seconds = 1
	}
	var cfg Config
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.Float64Var(&seconds, "seconds", seconds, "how long calls are begun for one row")
	flags.IntVar(&cfg.Rounds, "rounds", 3, "how often everything is measured")
	only := flags.String("only", "", "measure the servers whose names match this expression")
	flags.BoolVar(&cfg.NoFlush, "no-flush", false, "do not wait for the disk before each turn")
	flags.StringVar(&cfg.Dir, "dir", os.TempDir(), "where the servers keep their data")
	flags.StringVar(&cfg.Runnel, "runnel", "bin/runnel", "the binary of runnel")
	flags.StringVar(&cfg.Tools, "tools", ".tools", "where the peers are installed")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	cfg.Row = time.Duration(seconds * float64(time.Second))
	if cfg.Only, err = regexp.Compile(*only); err != nil {
		return cfg, fmt.Errorf("-only: %w", err)
	}
	return cfg, cfg.Validate()
}

// Validate reports every fault.
func (c Config) Validate() error {
	var faults []error
	if c.Row <= 0 || c.Row > time.Minute {
		faults = append(faults, fmt.Errorf("-seconds is %v: it goes up to 60", c.Row.Seconds()))
	}
	if c.Rounds < 1 {
		faults = append(faults, fmt.Errorf("-rounds is %d: it is at least 1", c.Rounds))
	}
	if _, err := os.Stat(c.Runnel); err != nil {
		faults = append(faults, fmt.Errorf("%w: make build makes it", err))
	}
	return errors.Join(faults...)
}
