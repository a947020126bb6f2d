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

// Config has the settings of a measurement.
type Config struct {
	// Row is the time in which calls of one row begin; calls in flight at its end are waited for.
	// Default 1 s, or RUNNEL_BENCH_SECONDS seconds.
	Row time.Duration
	// Rounds is the number of measurements of each row. Default 3.
	Rounds int
	// Only chooses servers by name. Default all.
	Only *regexp.Regexp
	// NoFlush leaves out the wait before each turn until the disk has written the data of the turn
	// before. Default false.
	NoFlush bool
	// Dir is the folder of the servers' data: its disk is measured. Default the system's folder
	// for temporary files.
	Dir string
	// Runnel is the binary that `make build` makes. Default bin/runnel.
	Runnel string
	// Before is another binary of runnel, as of an older commit: it gets rows of its own. Default
	// none.
	Before string
	// Tools is the folder into which bench/install and interop/install put the peers. Default
	// .tools.
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
	flags.Float64Var(&seconds, "seconds", seconds, "the time in which calls of one row begin")
	flags.IntVar(&cfg.Rounds, "rounds", 3, "the number of rounds")
	only := flags.String("only", "", "measure only the servers with a name that matches this "+
		"expression")
	flags.BoolVar(&cfg.NoFlush, "no-flush", false, "do not wait for the disk before each turn")
	flags.StringVar(&cfg.Dir, "dir", os.TempDir(), "the folder of the servers' data")
	flags.StringVar(&cfg.Runnel, "runnel", "bin/runnel", "the binary of runnel")
	flags.StringVar(&cfg.Before, "before", "", "another binary of runnel, for rows of its own")
	flags.StringVar(&cfg.Tools, "tools", ".tools", "the folder of the installed peers")
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
	if _, err := os.Stat(c.Before); c.Before != "" && err != nil {
		faults = append(faults, fmt.Errorf("-before: %w", err))
	}
	return errors.Join(faults...)
}
