// Command peers measures runnel and comparable servers with the same calls: one client, one
// machine, one run. It prints Markdown: each server's figures, runnel's ratio to each, and the
// goals with their results. `make bench-peers` runs it, and bench/README.md has its output.
//
// Each server is a separate process, and only one runs at a time. A process starts on an empty
// folder and goes through one group of rows. Then it ends and its folder is removed, so no group
// finds data of another. All groups run several times, every second time in the opposite order, and
// the medians count.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := func() error { return run(ctx, os.Args[1:], os.Stdout) }
	if address := os.Getenv(bareVariable); address != "" {
		do = func() error { return serveBare(ctx, address, os.Args[1]) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		stop()
		os.Exit(1)
	}
}

// run measures all rows and writes the report. It fails if runnel fails in any row. Failed and
// missing peers are noted below the tables.
func run(ctx context.Context, args []string, w io.Writer) error {
	cfg, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	begin := time.Now()
	all := servers(cfg)
	m := newMeasured()
	if m.disk, err = measureDisk(cfg); err != nil {
		return err
	}
	for round := range cfg.Rounds {
		for _, turn := range order(all, round) {
			if err := ctx.Err(); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%4.0fs  round %d  %-28s %s\n",
				time.Since(begin).Seconds(), round+1, turn.server.name, turn.group)
			if err := take(ctx, cfg, turn, m); err != nil {
				m.failed(turn, err)
			}
		}
	}
	if _, err := io.WriteString(w, report(cfg, all, m)); err != nil {
		return err
	}
	if m.runnelFailed {
		return errors.New("runnel failed in a row, see the notes")
	}
	return nil
}
