// Command soak runs the random suites in a large size and writes a table of their results. Run it
// by `make soak`, from the repository's root. RUNNEL_SOAK is the size as a multiple of CI's size;
// it is 100 if the variable is not above 1.
//
// A random test logs its size, as "soak: 300 seeds, 1200 crashes"; tests with rapid do so by
// themselves. Other tests have a row in the table only if they fail.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

// suite names the random tests of a package.
type suite struct {
	pkg  string
	run  string // the expression of go test -run; "" for all tests
	skip string // the expression of go test -skip
	// percent scales the size for this suite. At 100 a suite takes one core from 10 s (dynamo) to
	// 9 minutes (server). With the values below all suites take some 40 minutes on two cores.
	percent int
}

var suites = []suite{
	{pkg: "keyspace", percent: 100},
	{pkg: "keyspace/allocate", percent: 100},
	{pkg: "keyspace/load", percent: 100},
	{pkg: "keyspace/plan", percent: 100},
	{pkg: "internal/chart", percent: 100},
	{pkg: "internal/wire", percent: 100},
	{pkg: "internal/vfs", percent: 100},
	{pkg: "server/internal/wal", percent: 100},
	{pkg: "server/internal/shardlog", percent: 100},
	{pkg: "server/internal/itemstore", percent: 100},
	{pkg: "server/internal/fsck", percent: 100},
	{pkg: "server/internal/serverclock", percent: 100},
	{pkg: "server", percent: 60},
	{pkg: "server/internal/kinesis", percent: 50},
	{pkg: "server/internal/dynamo", percent: 400},
	{pkg: "producer", percent: 100},
	{pkg: "reshard", percent: 40},
	{pkg: "keytable", percent: 40},
	{pkg: "lease", percent: 400},
	// TestCost is a measurement. Its 200 workers with 10,000 leases take up to 14 GB.
	{pkg: "consumer", percent: 50, skip: "^TestCost$"},
	{pkg: "aggregate", percent: 100},
	{pkg: "proxy", percent: 100},
	{pkg: "sink/sinktest", percent: 200},
	{pkg: "sink/archive", percent: 50},
	{pkg: "sink/sqlsink", percent: 20},
	{pkg: "sink/rollup", percent: 100},
	{pkg: "internal/putlog", percent: 100},
	{pkg: "internal/keys", percent: 100},
	{
		pkg: "internal/cli/processes", run: "^Test(|Put|Server|Time|Record|Relay|Rollup)Kills$",
		percent: 10,
	},
}

func main() {
	out := flag.String("out", "bench/soak.md", "the table's file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := soak(ctx, *out); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		stop()
		os.Exit(1)
	}
}

var errFailed = errors.New("a test has failed")

// soak runs all suites, one after the other. It writes the table even if some fail.
func soak(ctx context.Context, out string) error {
	base, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK"))
	if err != nil || base <= 1 {
		base = 100
	}
	commit, err := commitOf(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	var rows []row
	for _, s := range suites {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		size := max(1, base*s.percent/100)
		more, err := s.test(ctx, size)
		if err != nil {
			return err
		}
		for _, r := range more {
			fmt.Fprintln(os.Stderr, r)
		}
		rows = append(rows, more...)
	}
	text := table(rows, commit, base, time.Since(began))
	if err := os.WriteFile(out, []byte(text), 0o644); err != nil {
		return err
	}
	for _, r := range rows {
		if r.failed {
			return errFailed
		}
	}
	return nil
}

// test runs the suite in a size, and returns a row for each random test and for each failure.
func (s suite) test(ctx context.Context, size int) ([]row, error) {
	args := []string{"test", "-json", "-count=1", "-timeout=10h"}
	if s.run != "" {
		args = append(args, "-run", s.run)
	}
	if s.skip != "" {
		args = append(args, "-skip", s.skip)
	}
	command := exec.CommandContext(ctx, "go", append(args, "./"+s.pkg)...)
	command.Env = append(os.Environ(), fmt.Sprint("RUNNEL_SOAK=", size))
	command.Stderr = os.Stderr
	events, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("go test %s: %w", s.pkg, err)
	}
	rows, err := read(events, s.pkg, os.Stderr)
	waitErr := command.Wait()
	var failed *exec.ExitError
	switch {
	case err != nil:
		return nil, fmt.Errorf("go test %s: %w", s.pkg, err)
	case errors.As(waitErr, &failed) && ctx.Err() == nil: // rows has the failure
		return rows, nil
	case waitErr != nil:
		return nil, fmt.Errorf("go test %s: %w", s.pkg, waitErr)
	}
	return rows, nil
}

// commitOf returns the short hash of the tested commit.
func commitOf(ctx context.Context) (string, error) {
	hash, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("git rev-parse: %w", err)
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "-uno").Output()
	if err != nil {
		return "", fmt.Errorf("git status: %w", err)
	}
	commit := strings.TrimSpace(string(hash))
	if len(changes) > 0 {
		commit += " with changes"
	}
	return commit, nil
}
