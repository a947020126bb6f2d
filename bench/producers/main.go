// Command producers puts real events into one stream in every way that keeps, or does not keep,
// the order of a key: single records, one of a key a call; SequenceNumberForOrdering; runnel's
// orders; the KPL. It prints Markdown: records a second, calls, and what a processor does.
// `make bench-producers` runs it; what it says stands in bench/README.md.
//
// Each client is a process of its own against a server of its own, over TLS, since the KPL knows
// nothing else, and with latency added to every call. A client reads the events and puts some
// into another stream first, to be warm; then its processor time and the server's count of calls
// are read, it puts everything, and they are read again.
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
	var err error
	if len(os.Args) > 1 && os.Args[1] == asClient {
		err = client(ctx, os.Args[2:], os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "producers:", err)
		stop()
		os.Exit(1)
	}
}

// run measures everything and writes the report. A client that fails is noted below the tables;
// runnel's own orders must not fail.
func run(ctx context.Context, args []string, w io.Writer) error {
	cfg, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	begin := time.Now()
	m := newMeasured()
	for _, field := range fields() {
		in, err := prepare(cfg, field)
		if err != nil {
			return err
		}
		m.inputs = append(m.inputs, in)
		for round := range cfg.Rounds {
			for _, limits := range cfg.Limits {
				for _, way := range ways(cfg) {
					fmt.Fprintf(os.Stderr, "%4.0fs  round %d  by %-5s  limits %-4s %s\n",
						time.Since(begin).Seconds(), round+1, field, limits, way.name)
					got, err := measure(ctx, cfg, in, limits, way)
					if err != nil && ctx.Err() != nil {
						return err
					}
					m.add(cell{field, limits, way.name}, got, err)
				}
			}
		}
		if err := os.Remove(in.file); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(w, report(cfg, m)); err != nil {
		return err
	}
	return m.ownFault
}
