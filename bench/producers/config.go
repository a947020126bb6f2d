package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Config says what is put, how, and how often.
type Config struct {
	// Data is the folder of the real events. Default RUNNEL_DATA.
	Data string
	// Passes is how often the events are put. Default 8.
	Passes int
	// Most is how long a client puts; what is not acknowledged then does not count. (The KPL
	// is waited for.) Default 10 s.
	Most time.Duration
	// Rounds is how often everything is measured; medians count. Default 3.
	Rounds int
	// Latency is added to every call. Default 20 ms.
	Latency time.Duration
	// Shards is how many the stream has. Default 8.
	Shards int
	// Limits are the server's: off, and aws for those of AWS's shards. Default both.
	Limits []string
	// Only chooses ways of putting by name. Default all.
	Only *regexp.Regexp
	// Runnel is the binary that `make build` makes. Default bin/runnel.
	Runnel string
	// Tools is where interop/install put the KPL. Default .tools.
	Tools string
}

// parse reads the command line.
func parse(args []string) (Config, error) {
	var cfg Config
	var err error
	flags := flag.NewFlagSet("producers", flag.ContinueOnError)
	flags.StringVar(&cfg.Data, "data", os.Getenv("RUNNEL_DATA"), "the folder of the events")
	flags.IntVar(&cfg.Passes, "passes", 8, "how often the events are put")
	flags.DurationVar(&cfg.Most, "most", 10*time.Second, "how long a client puts")
	flags.IntVar(&cfg.Rounds, "rounds", 3, "how often everything is measured")
	flags.DurationVar(&cfg.Latency, "latency", 20*time.Millisecond, "added to every call")
	flags.IntVar(&cfg.Shards, "shards", 8, "of the stream")
	limits := flags.String("limits", "off,aws", "the server's limits, one after the other")
	only := flags.String("only", "", "measure the ways whose names match this expression")
	flags.StringVar(&cfg.Runnel, "runnel", "bin/runnel", "the binary of runnel")
	flags.StringVar(&cfg.Tools, "tools", ".tools", "where the KPL is installed")
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	cfg.Limits = strings.Split(*limits, ",")
	if cfg.Only, err = regexp.Compile(*only); err != nil {
		return cfg, fmt.Errorf("-only: %w", err)
	}
	return cfg, cfg.Validate()
}

// Validate reports every fault.
func (c Config) Validate() error {
	var faults []error
	if _, err := os.Stat(c.events()); err != nil {
		faults = append(faults, fmt.Errorf("%w: RUNNEL_DATA or -data names its folder", err))
	}
	if _, err := os.Stat(c.Runnel); err != nil {
		faults = append(faults, fmt.Errorf("%w: make build makes it", err))
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"-passes", c.Passes}, {"-rounds", c.Rounds}, {"-shards", c.Shards}} {
		if n.value < 1 || n.value > 500 {
			faults = append(faults, fmt.Errorf("%s is %d: it goes from 1 to 500", n.flag, n.value))
		}
	}
	return errors.Join(faults...)
}

func (c Config) events() string { return filepath.Join(c.Data, "gh-events-20150101.ndjson.gz") }
