package cli

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/consumer"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/dynamotable"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/outbox"
	"github.com/runnel-stream/runnel/sink/rollup"
)

type rollupFlags struct {
	from                         endpoint.Flags
	stream, app, position        string
	db, table                    string // a SQL database
	dynamodb                     string // or a table of DynamoDB
	mongodb, collection          string // or a collection of MongoDB
	keys, sums, mins, maxs, last []string
	bucket, time, bad            string
	count, allowGaps, once       bool
	ttl                          time.Duration
	reading                      readFlags
	fleet                        workerFlags
}

func rollupCommand(con *console.Console) *cobra.Command {
	f := &rollupFlags{}
	command := &cobra.Command{
		Use: "rollup --stream NAME (--db URL --table TABLE | --dynamodb TABLE | --mongodb URI " +
			"--collection NAME) --key POINTER --bucket LENGTH --count",
		Short: "Fold a stream's JSON records into database rows by key and time, each once",
		Long: `Fold a stream's JSON records into database rows by key and time, each once.

The command reads batches, folds each in memory into one row for each combination of keys and time
bucket, and merges these rows into the table, in the transaction that moves the shard's position. So
the database gets one row for many records when the stream is behind, and each record counts once,
whatever is killed at any moment. See docs/rollup.md.

--db is postgres://USER@HOST/DATABASE or sqlite:FILE. The command makes the table, or checks that
one that is there fits. It is one worker of a fleet: start any number of them, and they share the
stream's shards. The database is the truth: restored from a backup, it is brought up to date again.

--dynamodb and --mongodb have no transaction over a batch. There each row has the positions up to
which it has the records of each shard, and is written on the condition of its version.

A field is a JSON pointer with a name and a type where the defaults do not fit:
[NAME=]/POINTER[:int|:double|:text]. Keys and --last are text, the others double. Sums of :int are
exact. The columns are named after the pointers: channel, sum_added, max_added.

A record that cannot be folded, since it is not JSON, lacks a field, or holds what a column cannot
take, is kept in TABLE_bad and counted; with --bad stop its shard stops, and the command ends with
2.

The command runs until SIGINT or SIGTERM. With --once it ends when everything that was in the stream
at the start is in the table. Where the stream's retention period has removed records, it ends with
1 and names the gap, unless --allow-gaps is given.`,
		Example: "  runnel rollup --local --stream edits --db sqlite:edits.db --table by_minute " +
			"--key /channel --bucket 1m --time /time --count --sum /added:int --once",
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := notEmpty(c, "db", "table", "dynamodb", "mongodb", "collection", "bucket", "time",
				"bad", "app", "fanout", "cloudwatch")
			if err != nil {
				return err
			}
			return f.run(c.Context(), con)
		},
	}
	f.addFlags(command)
	return command
}

func (f *rollupFlags) addFlags(command *cobra.Command) {
	f.from.AddFlags(command, true)
	flags := command.Flags()
	usage.StreamVar(flags, &f.stream, "stream", "the stream's name or ARN")
	flags.StringVar(&f.db, "db", "", "the database: postgres://USER@HOST/DATABASE or sqlite:FILE")
	flags.StringVar(&f.table, "table", "", "the table, in PostgreSQL perhaps with its schema")
	flags.StringVar(&f.dynamodb, "dynamodb", "",
		"a table of DynamoDB for the rows, in place of --db")
	flags.StringVar(&f.mongodb, "mongodb", "",
		"mongodb://HOST/DATABASE, in place of --db; with --collection")
	flags.StringVar(&f.collection, "collection", "", "the collection of MongoDB for the rows")
	flags.DurationVar(&f.ttl, "ttl", 0, "with --dynamodb and --mongodb: rows expire this long "+
		"after their last write and their bucket's end (default never)")
	flags.StringArrayVar(&f.keys, "key", nil,
		"a field that a row's records have in common; repeatable")
	flags.StringVar(&f.bucket, "bucket", "", "the length of a row's time bucket: 1m, 5m, 1h, 1d; "+
		"it divides a day (default none)")
	flags.StringVar(&f.time, "time", "",
		"the field of a record's time, RFC 3339 or a number since 1970 (default its arrival)")
	flags.BoolVar(&f.count, "count", false, "count the records")
	flags.StringArrayVar(&f.sums, "sum", nil, "a number to add up; repeatable")
	flags.StringArrayVar(&f.mins, "min", nil, "a value whose smallest is kept; repeatable")
	flags.StringArrayVar(&f.maxs, "max", nil, "a value whose largest is kept; repeatable")
	flags.StringArrayVar(&f.last, "last", nil, "a value of the last record by --time; repeatable")
	flags.StringVar(&f.bad, "bad", "skip",
		"skip or stop: what to do at a record that cannot be folded")
	flags.BoolVar(&f.allowGaps, "allow-gaps", false,
		"go on where the stream has removed records before they were read")
	flags.StringVar(&f.app, "app", "",
		"the application, which names the lease table (default <stream>-<table>)")
	flags.StringVar(&f.position, "from", "oldest",
		"oldest, latest or an RFC 3339 time, for shards that were not begun")
	flags.BoolVar(&f.once, "once", false,
		"end when everything that was in the stream at the start is in the table")
	f.reading.addFlags(flags)
	f.fleet.addFlags(command)
}

// definition returns what the flags ask for.
func (f *rollupFlags) definition() (rollup.Definition, error) {
	d := rollup.Definition{Time: f.time}
	for _, text := range f.keys {
		field, err := rollup.ParseField(text)
		if err != nil {
			return d, exit.Usage("--key: %w", err)
		}
		d.Keys = append(d.Keys, field)
	}
	if f.bucket != "" {
		var err error
		if d.Bucket, err = rollup.ParseBucket(f.bucket); err != nil {
			return d, exit.Usage("--bucket: %w", err)
		}
	}
	if f.count {
		d.Columns = append(d.Columns, rollup.Column{Op: rollup.Count})
	}
	for _, of := range []struct {
		op     rollup.Op
		fields []string
	}{{rollup.Sum, f.sums}, {rollup.Min, f.mins}, {rollup.Max, f.maxs}, {rollup.Last, f.last}} {
		for _, text := range of.fields {
			field, err := rollup.ParseField(text)
			if err != nil {
				return d, exit.Usage("--%s: %w", of.op, err)
			}
			d.Columns = append(d.Columns, rollup.Column{Op: of.op, Field: field})
		}
	}
	return d, nil
}

func (f *rollupFlags) policy() rollup.BadPolicy {
	if f.bad == "stop" {
		return rollup.StopAtBad
	}
	return rollup.SkipBad
}

// places returns the number of databases that the flags name.
func (f *rollupFlags) places() (n int) {
	for _, place := range []string{f.db, f.dynamodb, f.mongodb} {
		if place != "" {
			n++
		}
	}
	return n
}

// checkPlace reports what is wrong with the names of the database and the table.
func (f *rollupFlags) checkPlace() error {
	if f.mongodb != "" {
		parsed, err := connstring.ParseAndValidate(f.mongodb)
		if err == nil && parsed.Database == "" {
			err = errors.New("it names no database: want mongodb://HOST/DATABASE")
		}
		if err != nil {
			return exit.Usage("--mongodb: %w", err)
		}
	}
	if f.db == "" {
		return nil
	}
	kind, err := dialectOf(f.db)
	if err != nil {
		return err
	}
	if err := rollup.CheckTable(f.table, rollup.Dialect(kind)); err != nil {
		return exit.Usage("%w", err)
	}
	if kind == outbox.DialectPostgres {
		if _, err := pgx.ParseConfig(f.db); err != nil { // its text has no password
			return exit.Usage("--db: %w", err)
		}
	}
	return nil
}

// worker returns the configuration of the worker.
func (f *rollupFlags) worker() (consumer.Config, error) {
	cfg := consumer.Config{Stream: f.stream, App: f.app, Once: f.once}
	switch {
	case f.stream == "":
		return cfg, exit.Usage("--stream is missing: name the stream to read")
	case f.places() == 0:
		return cfg, exit.Usage("--db is missing: name the database, as " +
			"postgres://USER@HOST/DATABASE or sqlite:FILE, or name --dynamodb or --mongodb")
	case f.places() > 1:
		return cfg, exit.Usage("--db, --dynamodb and --mongodb exclude each other: name one")
	case f.db != "" && f.table == "":
		return cfg, exit.Usage("--table is missing: name the table of the rows")
	case f.mongodb != "" && f.collection == "":
		return cfg, exit.Usage("--collection is missing: name the collection of the rows")
	case f.db == "" && f.table != "":
		return cfg, exit.Usage("--table is for --db alone: leave it out")
	case f.mongodb == "" && f.collection != "":
		return cfg, exit.Usage("--collection is for --mongodb alone: leave it out")
	case f.db != "" && f.ttl != 0:
		return cfg, exit.Usage("--ttl is for --dynamodb and --mongodb alone: leave it out")
	case f.ttl < 0:
		return cfg, exit.Usage("--ttl is %s: want 0 (never) or more", f.ttl)
	case f.bad != "skip" && f.bad != "stop":
		return cfg, exit.Usage("--bad is %q: want skip or stop", f.bad)
	}
	if cfg.App == "" {
		to := f.table + f.dynamodb + f.collection // one of them
		cfg.App = streamref.Name(f.stream) + "-" + to
	}
	if err := dynamotable.CheckName(cfg.App); err != nil && f.app == "" {
		return cfg, exit.Usage("--app is missing: its default, the stream and the table, is no "+
			"name of a lease table: %w", err)
	} else if err != nil {
		return cfg, exit.Usage("--app: %w", err)
	}
	err := f.fleet.set(&cfg, &f.reading)
	if err != nil {
		return cfg, err
	}
	if cfg.From, err = runnel.ParseFrom(f.position); err != nil {
		return cfg, exit.Usage("--from: %w", err)
	}
	return cfg, nil
}

func (f *rollupFlags) run(ctx context.Context, con *console.Console) error {
	worker, err := f.worker()
	if err != nil {
		return err
	}
	definition, err := f.definition()
	if err != nil {
		return err
	}
	if err := definition.Validate(); err != nil {
		return exit.Usage("%w", err)
	}
	if err := f.checkPlace(); err != nil {
		return err
	}
	aws, err := f.from.Load(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	counts := &rollupCounts{}
	f.fleet.connect(&worker, aws)
	worker.Logger = con.Logger()
	worker.OnEvent = func(e consumer.Event) {
		counts.observe(e)
		if final := cmp.Or(finalOf(e.Err), voidStop(e)); final != nil {
			cancel(final)
		}
	}
	stopMetrics, err := serveMetrics(ctx, con, f.fleet.monitor.metrics,
		f.fleet.monitor.addTo(rollupPage(counts, streamref.Name(f.stream))))
	if err != nil {
		return err
	}
	defer stopMetrics()
	if err := f.findStream(ctx, worker.Kinesis); err != nil {
		return err // before a table is made for it
	}
	to := f.toSQL
	if f.db == "" {
		to = f.toRows
	}
	closeDB, err := to(ctx, &worker, definition, counts, cancel)
	if err != nil {
		return f.unlessStopped(ctx, err)
	}
	defer closeDB()
	w, err := consumer.New(worker)
	if err != nil {
		return exit.Usage("%w", err)
	}
	f.fleet.monitor.worker.Store(w)
	start := time.Now()
	stop := con.Watch(ctx, func() string { return rollupLine(f.stream, counts, start) })
	err = w.Run(ctx)
	stop()
	return f.ended(ctx, con, err, rollupLine(f.stream, counts, start))
}

// findStream returns an error if the stream is not there.
func (f *rollupFlags) findStream(ctx context.Context, api consumer.KinesisAPI) error {
	err := patiently(ctx, func() error {
		_, err := api.DescribeStreamSummary(ctx, streamref.Describe(f.stream))
		return err
	})
	if err != nil {
		err = workerError("rollup of stream "+f.stream, f.stream, err)
	}
	return f.unlessStopped(ctx, err)
}

// unlessStopped returns the error of the start, or that of an interrupt if the user has ended the
// command meanwhile.
func (f *rollupFlags) unlessStopped(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case f.once:
		return exit.ErrInterrupt
	}
	return nil
}

// ended returns the command's error.
func (f *rollupFlags) ended(
	ctx context.Context, con *console.Console, err error, line string,
) error {
	cause := context.Cause(ctx)
	switch known := new(exit.Error); {
	case errors.As(cause, &known) && !errors.Is(cause, exit.ErrStop):
		con.Say("%s", line)
		return cause
	case err != nil && !errors.Is(err, exit.ErrStop):
		return workerError("rollup of stream "+f.stream, f.stream, err)
	case f.once && ctx.Err() != nil:
		return exit.ErrInterrupt
	}
	con.Say("%s", line)
	return nil
}
