// Command peers puts runnel and the servers that people use in its place through the same calls:
// one client, one machine, one run. It prints Markdown: what each reached, runnel's ratio to
// each, and the goals with whether they are met. `make bench-peers` runs it; what it says stands
// in bench/README.md.
//
// Each server runs as a process of its own, and no two at a time. One process goes through one
// group of rows, from its start on an empty folder; then it ends and its folder is removed, so
// that no row finds what another has left. The groups go round several times, every second time
// in the opposite order, and the medians count.
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

// run measures everything and writes the report. It fails if runnel fails in any row; a peer that
// fails or is not installed is noted below the tables.
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
