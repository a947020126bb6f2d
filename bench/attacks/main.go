// Command attacks attacks `runnel serve` as hostile clients would, and measures meanwhile how long
// the calls of others take, and the server's memory. It prints Markdown. `make bench-attacks` runs
// it, and bench/README.md has its output.
//
// Each attack has a server and a process of its own. The calls of others are a ListStreams, a
// lease's UpdateItem and a GetRecords of one byte from another stream, one of each every 20 ms.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

// Config has the settings of a measurement.
type Config struct {
	// Runnel is the binary that `make build` makes. Default bin/runnel.
	Runnel string
	// Only chooses attacks by name. Default all.
	Only *regexp.Regexp
	// After is the time between an attack's end and the last look at the memory. Default 30 s.
	After time.Duration
}

// asAttacker is the first argument of this program as an attacker.
const asAttacker = "attacker"

func main() { process.Main("attacks", asAttacker, attackOf, run) }

// attackOf is the main function of an attacker. Its arguments are the name of the attack and the
// server's address.
func attackOf(ctx context.Context, args []string, _ io.Reader, _ io.Writer) error {
	for _, a := range attacks() {
		if len(args) == 2 && a.name == args[0] {
			ctx, stop := context.WithTimeout(ctx, a.time)
			defer stop()
			a.attack(ctx, newTarget(args[1], false))
			return nil
		}
	}
	return errors.New("an attacker is started by the benchmark itself")
}

func run(ctx context.Context, args []string, w io.Writer) error {
	var cfg Config
	flags := flag.NewFlagSet("attacks", flag.ExitOnError)
	flags.StringVar(&cfg.Runnel, "runnel", "bin/runnel", "the binary of runnel")
	only := flags.String("only", "", "the attacks with a name that matches this expression")
	flags.DurationVar(&cfg.After, "after", 30*time.Second,
		"the time between an attack's end and the last look at the memory")
	_ = flags.Parse(args) // it exits
	var err error
	if cfg.Only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	_, _ = fmt.Fprint(w, "| attack | ListStreams, ms: p50, p99, most | "+
		"UpdateItem, ms: p50, p99, most | GetRecords, ms: p50, p99, most | unanswered | "+
		"memory, MB: before, most, after |\n|---|---|---|---|---|---|\n")
	for _, a := range attacks() {
		if !cfg.Only.MatchString(a.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, a.name)
		row, err := a.measure(ctx, cfg)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		_, _ = fmt.Fprintln(w, row)
	}
	return nil
}

// measure runs an attack on a server of its own, and returns a row of the report.
func (a attack) measure(ctx context.Context, cfg Config) (row string, err error) {
	server, err := process.ServeFiles(ctx, cfg.Runnel, a.files, "--stream", "attacked:4",
		"--stream", small+":1", "--stream", fmt.Sprint(subscribed, ":", subShards))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, server.End()) }()
	target := newTarget(server.Address, a.files > 0)
	if err := target.prepare(ctx); err != nil {
		return "", err
	}
	if a.prepare != nil {
		if err := a.prepare(ctx, target); err != nil {
			return "", err
		}
	}
	before := server.Memory("VmRSS")
	others, err := watch(ctx, target)
	if err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if err := exec.CommandContext(ctx, self, asAttacker, a.name, server.Address).Run(); err != nil {
		return "", err
	}
	others.stop()
	most := server.Memory("VmHWM")
	select {
	case <-time.After(cfg.After):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %d | %.0f, %.0f, %.0f |", a.name, others.list,
		others.update, others.read,
		others.list.unanswered+others.update.unanswered+others.read.unanswered, before, most,
		server.Memory("VmRSS")), nil
}

// times are the times of the calls of others.
type times struct {
	took       []time.Duration
	unanswered int
}

func (t times) String() string {
	if len(t.took) == 0 {
		return "none"
	}
	slices.Sort(t.took)
	at := func(part float64) float64 {
		return t.took[min(len(t.took)-1, int(part*float64(len(t.took))))].Seconds() * 1000
	}
	return fmt.Sprintf("%.1f, %.0f, %.0f", at(0.5), at(0.99), at(1))
}
