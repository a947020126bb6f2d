package cli

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/s3store"
)

type archiveFlags struct {
	from                            endpoint.Flags
	place                           placeFlags
	stream, to, app, position, size string
	table                           tableFlags
	reading                         readFlags
	fleet                           workerFlags
	every                           time.Duration
	once                            bool
}

func archiveCommand(con *console.Console) *cobra.Command {
	f := &archiveFlags{}
	command := &cobra.Command{
		Use:   "archive --stream NAME --to DIR|s3://BUCKET/PREFIX",
		Short: "Archive a stream into a folder or S3, each record exactly once",
		Long: `Archive a stream into a folder or S3, each record exactly once.

The command is one worker of a fleet. Start any number of them, on any machines that see the place:
they share the stream's shards through a lease table, which --app names. When a worker dies, the
others take its shards over after --failover.

Each object is gzipped NDJSON, and zcat shows records only. The command runs until SIGINT or
SIGTERM, then commits its records and hands its shards over. With --once it ends when it has
archived everything that was in the stream at the start.

It tries the place first: if a folder cannot be made or written (a file in its place, a read-only
disk, no permission, no space), or a bucket refuses, the status is 3. A damaged archive also ends
--once with 3, after the undamaged shards are done.

S3 needs a store that honours If-None-Match for PutObject; one that does not is refused with status
2. Each link is one PUT and an object for ever, so --every is 60s there. A command that has started
waits when the store cannot be reached, and goes on.

With --table the records are also in a table, each in the folder of its own minute, hour or day; see
runnel tables. Commits do not wait for it, and --once does.

The stream's retention period may remove records before a worker reads them. The archive keeps the
place as a gap, the command reports it, and runnel verify ends with 1 for it.`,
		Example: "  runnel archive --local --stream orders --to archive --once",
		Args:    usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.place.like(c)
			if err := notEmpty(c, "app", "table", "layout", "fanout", "cloudwatch"); err != nil {
				return err
			}
			if f.every <= 0 && c.Flags().Changed("every") {
				return exit.Usage("--every is %s: want more than 0, or leave it out", f.every)
			}
			return runArchive(c.Context(), con, f)
		},
	}
	f.from.AddFlags(command, true)
	f.place.addFlags(command, true, false)
	f.table.addFlags(command)
	flags := command.Flags()
	usage.StreamVar(flags, &f.stream, "stream", "the stream's name or ARN")
	flags.StringVar(&f.to, "to", "", "the archive's folder, or s3://BUCKET/PREFIX")
	flags.StringVar(&f.app, "app", "",
		"the application, which names the lease table (default <stream>-archive)")
	flags.StringVar(&f.position, "from", "oldest",
		"oldest, latest or an RFC 3339 time, for shards without a checkpoint")
	flags.DurationVar(&f.every, "every", 0,
		"commit at least this often while records arrive (default 5s; in S3 60s)")
	flags.StringVar(&f.size, "size", "64MiB", "commit at this size, before compression")
	flags.BoolVar(&f.once, "once", false,
		"end when everything that was in the stream at the start is archived")
	f.reading.addFlags(flags)
	f.fleet.addFlags(command)
	return command
}

func (f *archiveFlags) config() (consumer.Config, archive.Config, error) {
	worker := consumer.Config{Stream: f.stream, App: f.app, Once: f.once}
	target := archive.Config{Every: f.every}
	if f.stream == "" {
		return worker, target, exit.Usage("--stream is missing: name the stream to archive")
	}
	if f.to == "" {
		return worker, target, exit.Usage("--to is missing: name the archive's folder, or " +
			"s3://BUCKET/PREFIX")
	}
	if worker.App == "" {
		worker.App = streamref.Name(f.stream) + "-archive"
	}
	err := f.fleet.set(&worker, &f.reading)
	if err != nil {
		return worker, target, err
	}
	if err = f.table.check(); err != nil {
		return worker, target, err
	}
	if worker.From, err = runnel.ParseFrom(f.position); err != nil {
		return worker, target, exit.Usage("--from: %w", err)
	}
	if target.Size, err = usage.ParseSize(f.size); err != nil {
		return worker, target, exit.Usage("--size: %w", err)
	}
	return worker, target, nil
}

// everyInS3 is the default of --every in S3, where each link costs a PUT: 16 shards at 5 s would be
// 276,480 of them a day.
const everyInS3 = time.Minute

// open opens the archive, and its table if there is one.
func (f *archiveFlags) open(
	ctx context.Context, con *console.Console, target archive.Config,
) (*archive.Archive, *derived, error) {
	store, err := f.place.target(ctx, f.to)
	if err != nil {
		return nil, nil, err
	}
	if target.Every == 0 && s3store.IsURL(f.to) {
		target.Every = everyInS3
	}
	by := &derived{con: con, flags: &f.table, store: store, stream: streamref.Name(f.stream)}
	target.Store, target.OnTip = store, by.take
	sink, err := archive.New(target)
	if err != nil {
		return nil, nil, exit.Usage("%w", err)
	}
	return sink, by, nil
}

// probe tries the archive's place.
func (f *archiveFlags) probe(ctx context.Context, sink *archive.Archive) error {
	if err := sink.Probe(ctx); err != nil && ctx.Err() == nil {
		return f.unusable(err, s3store.IsURL(f.to))
	}
	return nil
}

// unusable returns the error of a place that cannot take an archive.
func (f *archiveFlags) unusable(err error, inS3 bool) error {
	if errors.Is(err, s3store.ErrConditionIgnored) {
		return exit.Usage("%w", err)
	}
	err = fmt.Errorf("archive to %s: %w", f.to, errors.Unwrap(err))
	if !inS3 {
		err = fmt.Errorf("%w; name a folder that can be written", err)
	}
	return exit.Outside(err)
}

// workerCounts are the counts of a worker of a fleet.
type workerCounts struct {
	read, doubles, voided, voidTaken, commits, shards, takeovers, gaps atomic.Int64
	unclaimed                                                          atomic.Int64
}

// archiveCounts are the counts of an archive worker.
type archiveCounts struct {
	workerCounts
	again, outages atomic.Int64
}

func (n *workerCounts) observe(e consumer.Event) {
	switch e.Kind {
	case consumer.EventDelivered:
		n.read.Add(int64(e.Records))
		n.doubles.Add(int64(e.Doubles))
	case consumer.EventVoided:
		n.voided.Add(int64(e.Dropped))
		if void := new(consumer.VoidError); errors.As(e.Err, &void) {
			n.voidTaken.Add(int64(void.Delivered))
		}
	case consumer.EventTrimmed:
		n.gaps.Add(1)
	case consumer.EventUnclaimed:
		n.unclaimed.Store(int64(len(e.Unclaimed)))
	case consumer.EventCommitted:
		n.commits.Add(1)
	case consumer.EventShardStarted:
		n.shards.Add(1)
	case consumer.EventLeaseExpired:
		n.takeovers.Add(1)
	}
}

// standstill measures how long a worker has read, committed and ended nothing.
type standstill struct{ since atomic.Int64 } // nanoseconds since 1970

func newStandstill(start time.Time) *standstill {
	p := &standstill{}
	p.since.Store(start.UnixNano())
	return p
}

func (p *standstill) observe(e consumer.Event) time.Duration {
	switch e.Kind {
	case consumer.EventDelivered, consumer.EventCommitted, consumer.EventShardStarted,
		consumer.EventShardEnded, consumer.EventCaughtUp:
		p.since.Store(e.Time.UnixNano())
	default:
	}
	return time.Duration(e.Time.UnixNano() - p.since.Load())
}

// observe returns the observer of a worker's events. It counts them, and ends the worker after an
// error that another try does not mend.
func (f *archiveFlags) observe(
	counts *archiveCounts, still *standstill, cancel context.CancelCauseFunc,
) func(consumer.Event) {
	return func(e consumer.Event) {
		counts.observe(e)
		if stop := voidStop(e); stop != nil {
			cancel(stop)
		}
		if ahead := new(archive.AheadError); errors.As(e.Err, &ahead) {
			cancel(ahead)
		}
		if errors.Is(e.Err, archive.ErrStoreRefused) {
			cancel(e.Err)
		}
		if idle := still.observe(e); f.once && idle > f.fleet.failover &&
			errors.Is(e.Err, archive.ErrUnusableLink) {
			cancel(e.Err) // the other shards are done or wait for this one
		}
	}
}

func runArchive(ctx context.Context, con *console.Console, f *archiveFlags) error {
	worker, target, err := f.config()
	if err != nil {
		return err
	}
	cfg, err := f.from.Load(ctx)
	if err != nil {
		return err
	}
	counts := &archiveCounts{}
	target.OnOutage = func(o archive.Outage) {
		counts.outages.Add(1)
		con.Logger().Warn("the archive cannot be reached: will try again", "object", o.Name,
			"for", time.Since(o.Since).Round(time.Second), "error", o.Err)
	}
	target.OnDiscard = func(records int64) { counts.again.Add(records) }
	sink, by, err := f.open(ctx, con, target)
	if err != nil {
		return err
	}
	stopMetrics, err := serveMetrics(ctx, con, f.fleet.monitor.metrics,
		f.fleet.monitor.addTo(counts.page(streamref.Name(f.stream))))
	if err != nil {
		return err
	}
	defer stopMetrics()
	f.fleet.connect(&worker, cfg)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	worker.Sink, worker.Logger = sink, con.Logger()
	start := time.Now()
	worker.OnEvent = f.observe(counts, newStandstill(start), cancel)
	w, err := consumer.New(worker)
	if err != nil {
		return exit.Usage("%w", err)
	}
	f.fleet.monitor.worker.Store(w)
	if err := f.probe(ctx, sink); err != nil {
		return err
	}
	if err := by.start(ctx, !f.once); err != nil {
		return err
	}
	defer by.close()
	stop := con.Watch(ctx, func() string { return archiveLine(f.stream, counts, start) })
	runErr := w.Run(ctx)
	stop()
	switch ahead, known := new(archive.AheadError), new(exit.Error); {
	case errors.As(context.Cause(ctx), &known) && !errors.Is(known, exit.ErrStop):
		return known
	case errors.As(context.Cause(ctx), &ahead):
		return exit.Usage("archive stream %s to %s: %w", f.stream, f.to, ahead)
	case errors.Is(context.Cause(ctx), archive.ErrStoreRefused):
		return exit.Outside(fmt.Errorf("archive stream %s to %s: %w", f.stream, f.to,
			context.Cause(ctx)))
	case errors.Is(context.Cause(ctx), archive.ErrUnusableLink):
		return exit.Outside(fmt.Errorf("archive stream %s to %s: %w; runnel verify %s lists "+
			"the damage", f.stream, f.to, context.Cause(ctx), f.to))
	case runErr != nil && !errors.Is(runErr, exit.ErrStop):
		return workerError("archive stream "+f.stream, f.stream, runErr)
	case f.once && ctx.Err() != nil:
		return exit.ErrInterrupt
	}
	err = by.finish(ctx, f.once)
	con.Say("%s", archiveLine(f.stream, counts, start))
	if line := by.line(); line != "" {
		con.Say("%s", line)
	}
	return err
}

func archiveLine(stream string, n *archiveCounts, start time.Time) string {
	stream = streamref.Name(stream)
	line := fmt.Sprintf("archive of %s: %s records read, %s/s, %s read again, %s doubles "+
		"dropped, %d commits, "+
		"%d shards begun, %d taken over", stream, console.Thousands(n.read.Load()),
		console.Thousands(console.Rate(n.read.Load(), time.Since(start))),
		console.Thousands(n.again.Load()), console.Thousands(n.doubles.Load()),
		n.commits.Load(), n.shards.Load(), n.takeovers.Load())
	line += n.voidCounts()
	if gaps := n.gaps.Load(); gaps > 0 {
		line += fmt.Sprintf(", %d gaps, where the stream removed records before they were read",
			gaps)
	}
	return line
}
