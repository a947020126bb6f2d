package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/metricspage"
)

// tailFleetFlags are the flags of tail as one worker of a fleet.
type tailFleetFlags struct {
	app, worker string
	static      bool
	workerFlags
}

func (f *tailFleetFlags) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.app, "app", "",
		"print as one worker of this application's fleet; it names the lease table")
	flags.StringVar(&f.worker, "worker", "",
		"the worker's name in the fleet (default: the host, the process and a random part)")
	flags.BoolVar(&f.static, "static", false,
		"keep the shards over a restart: --worker outlives the process")
	f.workerFlags.addFlags(command)
}

// tailFleetOnly are the flags that have no meaning without --app.
var tailFleetOnly = []string{
	"worker", "static", "dynamodb-endpoint",
}

// check returns an error for flags that do not fit together.
func (f *tailFlags) check(c *cobra.Command) error {
	if err := f.reading.check(); err != nil {
		return err
	}
	if err := notEmpty(c, "shard", "worker", "fanout", "cloudwatch"); err != nil {
		return err
	}
	if f.fleet.app == "" {
		if c.Flags().Changed("app") {
			return exit.Usage("--app is empty: want the application's name, which names the " +
				"lease table")
		}
		only := slices.Concat(tailFleetOnly, workerOnly)
		if i := slices.IndexFunc(only, c.Flags().Changed); i >= 0 {
			return exit.Usage("--%s is only for a worker of a fleet: name the application with "+
				"--app", only[i])
		}
		return nil
	}
	if f.shard != "" {
		return exit.Usage("--shard does not go with --app: the workers of a fleet share all shards")
	}
	if f.fleet.static && f.fleet.worker == "" {
		return exit.Usage("--static needs --worker: a name that this worker has in every process")
	}
	return nil
}

// worker returns the configuration of a worker that prints.
func (f *tailFlags) worker(con *console.Console, from runnel.From) consumer.Config {
	cfg := consumer.Config{
		Stream: f.stream, App: f.fleet.app, WorkerID: f.fleet.worker, Static: f.fleet.static,
		From: from, Once: f.once, KeepDoubles: f.doubles, Logger: con.Logger(),
	}
	return cfg
}

// runTailFleet prints the records of the shards that this worker of a fleet holds. A line is out
// before its checkpoint, so after a crash some lines come again, and none is missing.
func runTailFleet(con *console.Console, c *cobra.Command, f *tailFlags, from runnel.From) error {
	ctx, cancel := context.WithCancelCause(c.Context())
	defer cancel(nil)
	to, err := f.of.Load(ctx)
	if err != nil {
		return err
	}
	cfg := f.worker(con, from)
	if err := f.fleet.set(&cfg, &f.reading); err != nil {
		return err
	}
	f.fleet.connect(&cfg, to)
	printer := &recordPrinter{
		out: bufio.NewWriterSize(con.Out, 1<<16), json: con.JSON(), verbose: con.Verbose,
	}
	cfg.Handler = func(ctx context.Context, b *consumer.Batch) error {
		err := printer.print(ctx, records(b))
		switch {
		case errors.Is(err, syscall.EPIPE):
			cancel(err) // the reader of the output has closed it: no checkpoint passes this batch
		case err != nil && ctx.Err() == nil: // such as a full disk, which may have cut a line off
			cancel(exit.Outside(fmt.Errorf("tail stream %s: %w", f.stream, err)))
		}
		return err
	}
	cfg.OnEvent = func(e consumer.Event) {
		if stop := voidStop(e); stop != nil {
			cancel(stop)
		}
		tailEvent(con, e)
	}
	w, err := consumer.New(cfg)
	if err != nil {
		return exit.Usage("%w", err)
	}
	f.fleet.monitor.worker.Store(w)
	stop, err := serveMetrics(ctx, con, f.fleet.monitor.metrics,
		f.fleet.monitor.addTo(metricspage.New()))
	if err != nil {
		return err
	}
	defer stop()
	err = w.Run(ctx)
	closed := errors.Is(context.Cause(ctx), syscall.EPIPE)
	switch known := new(exit.Error); {
	case closed:
		return nil
	case errors.As(context.Cause(ctx), &known) && !errors.Is(known, exit.ErrStop):
		return known
	case err != nil && !errors.Is(err, exit.ErrStop):
		return workerError("tail stream "+f.stream, f.stream, err)
	case f.once && ctx.Err() != nil:
		return exit.ErrInterrupt
	default:
		return nil
	}
}

// records returns a batch's records.
func records(b *consumer.Batch) func(yield func(*runnel.Record) bool) {
	return func(yield func(*runnel.Record) bool) {
		for i := range b.Records {
			if !yield(&b.Records[i]) {
				return
			}
		}
	}
}

// tailEvent prints an event on standard error, if the records do not show it.
func tailEvent(con *console.Console, e consumer.Event) {
	switch e.Kind {
	case consumer.EventLeaseTaken, consumer.EventLeaseReceived, consumer.EventLeaseResumed,
		consumer.EventLeaseReleased, consumer.EventLeaseKept, consumer.EventShardEnded:
		if con.Verbose {
			con.Say("%s %s", e.ShardID, e.Kind)
		}
	case consumer.EventLeaseExpired, consumer.EventLeaseStolen, consumer.EventLeasePassed:
		if con.Verbose {
			con.Say("%s %s: %s", e.ShardID, e.Kind, e.Other)
		}
	case consumer.EventVoided:
		con.Say("%s", e.Err)
	case consumer.EventLeaseLost:
		con.Say("%s", fmt.Sprintf("%s %s: %v", e.ShardID, e.Kind, e.Err))
	default: // the logger reports failures and gaps
	}
}
