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

// Config has the settings of a measurement.
type Config struct {
	// Data is the folder of the real events. Default RUNNEL_DATA.
	Data string
	// Passes is the number of times that the events are put. Default 8.
	Passes int
	// Most is the longest time that a client puts. Records that are not acknowledged by then do not
	// count, but the KPL is waited for. Default 10 s.
	Most time.Duration
	// Rounds is the number of measurements; medians count. Default 3.
	Rounds int
	// Latency is added to every call. Default 20 ms.
	Latency time.Duration
	// Shards is the number of the stream's shards. Default 8.
	Shards int
	// Limits are the limits of the server, measured in turn: off, or aws for AWS's. Default both.
	Limits []string
	// Only chooses ways of putting by name. Default all.
	Only *regexp.Regexp
	// Runnel is the binary that `make build` makes. Default bin/runnel.
	Runnel string
	// Tools is the folder into which interop/install puts the KPL. Default .tools.
	Tools string
}

// parse reads the command line.
func parse(args []string) (Config, error) {
	var cfg Config
	var err error
	flags := flag.NewFlagSet("producers", flag.ContinueOnError)
	flags.StringVar(&cfg.Data, "data", os.Getenv("RUNNEL_DATA"), "the folder of the events")
	flags.IntVar(&cfg.Passes, "passes", 8, "the number of times that the events are put")
	flags.DurationVar(&cfg.Most, "most", 10*time.Second, "the longest time that a client puts")
	flags.IntVar(&cfg.Rounds, "rounds", 3, "the number of rounds")
	flags.DurationVar(&cfg.Latency, "latency", 20*time.Millisecond, "the latency added to a call")
	flags.IntVar(&cfg.Shards, "shards", 8, "the number of the stream's shards")
	limits := flags.String("limits", "off,aws", "the server's limits, one after the other")
	only := flags.String("only", "", "measure only the ways with a name that matches this "+
		"expression")
	flags.StringVar(&cfg.Runnel, "runnel", "bin/runnel", "the binary of runnel")
	flags.StringVar(&cfg.Tools, "tools", ".tools", "the folder of the installed KPL")
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
