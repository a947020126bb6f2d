package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
)

// tailFleetFlags are the flags of tail as one worker of a fleet.
type tailFleetFlags struct {
	app, worker, fanout string
	static              bool
	failover            time.Duration
	limits              fleetLimits
}

func (f *tailFleetFlags) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.app, "app", "",
		"print as one worker of this application's fleet; it names the lease table")
	flags.StringVar(&f.worker, "worker", "",
		"the worker's name in the fleet (default: the host, the process and a random part)")
	addFanout(command, &f.fanout)
	flags.BoolVar(&f.static, "static", false,
		"keep the shards over a restart: --worker outlives the process")
	flags.DurationVar(&f.failover, "failover", 10*time.Second,
		"how long a worker may be silent before the others take its shards over")
	f.limits.addFlags(flags)
}

// tailFleetOnly are the flags that have no meaning without --app.
var tailFleetOnly = []string{
	"worker", "static", "failover", "fanout", "max-leases", "checkpoint-every", "dynamodb-endpoint",
}

// check returns an error for flags that do not fit together.
func (f *tailFlags) check(c *cobra.Command) error {
	if err := f.readRate.check(); err != nil {
		return err
	}
	if f.fleet.app == "" {
		if c.Flags().Changed("app") {
			return exit.Usage("--app is empty: want the application's name, which names the " +
				"lease table")
		}
		i := slices.IndexFunc(tailFleetOnly, func(name string) bool {
			return c.Flags().Changed(name)
		})
		if i >= 0 {
			return exit.Usage("--%s is only for a worker of a fleet: name the application with "+
				"--app", tailFleetOnly[i])
		}
		return nil
	}
	if err := notEmpty(c, "fanout"); err != nil {
		return err
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
		Failover: f.fleet.failover, From: from, Once: f.once, KeepDoubles: f.doubles,
		ReadRate: float64(f.readRate), Logger: con.Logger(), Fanout: fanoutOf(f.fleet.fanout),
		Void: f.void.policy(),
	}
	if f.fleet.failover == 0 {
		cfg.Failover = -1 // refused, where 0 would mean the default
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
	if err := f.fleet.limits.set(&cfg); err != nil {
		return err
	}
	cfg.Kinesis, cfg.DynamoDB = awsclient.Kinesis(to), awsclient.DynamoDB(to)
	var mu sync.Mutex // several shards print
	printer := &recordPrinter{
		out: bufio.NewWriterSize(con.Out, 1<<16), json: con.JSON(), verbose: con.Verbose,
	}
	cfg.Handler = func(ctx context.Context, b *consumer.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		err := printer.page(ctx, records(b))
		if errors.Is(err, syscall.EPIPE) {
			cancel(err) // the reader of the output has closed it: no checkpoint passes this batch
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
