// Command producers puts real events into one stream in several ways, with and without the order of
// a key: single records with at most one of a key in a call, SequenceNumberForOrdering, runnel's
// orders, and the KPL. It prints Markdown: records a second, calls, and records per second of
// processor time. `make bench-producers` runs it, and bench/README.md has its output.
//
// Each client is a separate process with its own server, over TLS, since the KPL requires TLS, and
// with latency added to every call. A client reads the events and warms up with puts into another
// stream. Its processor time and the server's count of calls are read before and after the measured
// puts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/runnel-stream/runnel/bench/internal/process"
)

func main() { process.Main("producers", asClient, client, run) }

// run measures all ways and writes the report. Failed clients are noted below the tables. It
// returns an error if any client but the KPL fails.
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
