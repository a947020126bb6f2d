package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/keys"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/outbox"
	"github.com/runnel-stream/runnel/producer"
)

type relayFlags struct {
	to                                 endpoint.Flags
	keys                               keys.Flag
	db, stream, metrics                string
	table                              outbox.Table
	dataType                           string
	failover                           time.Duration
	once, deadLetter                   bool
	migrate, print, check, held, dryly bool
	release                            string
	skip                               bool
}

func relayCommand(con *console.Console) *cobra.Command {
	f := &relayFlags{}
	command := &cobra.Command{
		Use:   "relay --db URL --stream NAME",
		Short: "Relay the rows of a SQL outbox table into a stream, once and in order per key",
		Long: `Relay the rows of a SQL outbox table into a stream, once and in order per key.

Programs insert rows into the table in the transactions that change their other data. The relay puts
each committed row into the stream and deletes it. runnel's consumers see every row exactly once, in
the order of its key, also when relays, the database and the stream are killed at any moment. See
docs/outbox.md for the writers' part: order per key needs rows of one key to be written one after
another.

--db is postgres://USER@HOST/DATABASE or sqlite:FILE. Any number of relays may run: one has the
lease, and the others take over after --failover. --table and the flags of its columns name a table
that there is already; --migrate makes what is missing.

A row that no stream takes (a key that is empty or longer than 256 characters, data that is too
large) holds its key, and the other keys flow; --held lists held keys, and --release lets one go on.
With --dead-letter such rows go to the table outbox_dead instead.

The command runs until SIGINT or SIGTERM, then delivers the rows on their way and hands the lease
over. With --once it ends when everything that was in the table at the start is in the stream; held
keys make that status 1. When the stream refuses the caller, it ends with 3 and nothing is held.`,
		Example: `  runnel relay --db sqlite:app.db --migrate
  runnel relay --db sqlite:app.db --local --stream orders --once`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := notEmpty(c, "table", "id", "key", "data", "hash-key"); err != nil {
				return err
			}
			return f.run(c, con)
		},
	}
	f.to.AddFlags(command, true)
	f.keys.AddTo(command)
	flags := command.Flags()
	flags.StringVar(&f.db, "db", "", "the database: postgres://USER@HOST/DATABASE or sqlite:FILE")
	usage.StreamVar(flags, &f.stream, "stream", "the stream's name or ARN")
	flags.StringVar(&f.table.Name, "table", "outbox",
		"the table, in PostgreSQL perhaps with its schema")
	flags.StringVar(&f.table.ID, "id", "id", "the column of the ids, integers that only grow")
	flags.StringVar(&f.table.Key, "key", "partition_key", "the column of the partition keys")
	flags.StringVar(&f.table.Data, "data", "record_data", "the column of the data")
	flags.StringVar(&f.table.HashKey, "hash-key", "",
		"the column of explicit hash keys; - for none (default explicit_hash_key, if it is there)")
	flags.StringVar(&f.dataType, "type", "",
		"the data's type: jsonb, json, text or bytea (default as the table has it, else jsonb)")
	flags.BoolVar(&f.migrate, "migrate", false, "make the tables of the relay, and end")
	flags.BoolVar(&f.print, "print", false, "with --migrate: print the SQL instead")
	flags.BoolVar(&f.check, "check", false, "check the tables, print their numbers, and end")
	flags.BoolVar(&f.held, "held", false, "list the held keys, and end")
	flags.StringVar(&f.release, "release", "", "let this held key go on, and end")
	flags.BoolVar(&f.skip, "skip", false,
		"with --release: the rows that cannot be put become dead letters")
	flags.BoolVar(&f.dryly, "dry-run", false, "print the rows that would be put, and end")
	flags.DurationVar(&f.failover, "failover", 10*time.Second,
		"how long a relay may be silent before another takes over")
	flags.BoolVar(&f.deadLetter, "dead-letter", false,
		"move rows that no stream takes to the table outbox_dead, and let their keys go on")
	flags.StringVar(&f.metrics, "metrics", "",
		"HOST:PORT: serve the relay's numbers there, at GET /metrics, for Prometheus")
	flags.BoolVar(&f.once, "once", false,
		"end when everything that was in the table at the start is in the stream")
	return command
}

// run carries out the mode that the flags name.
func (f *relayFlags) run(c *cobra.Command, con *console.Console) error {
	modes := 0
	releasing := c.Flags().Changed("release")
	for _, on := range []bool{f.migrate, f.check, f.held, releasing, f.dryly} {
		if on {
			modes++
		}
	}
	f.table.Type = outbox.DataType(f.dataType)
	switch {
	case modes > 1:
		return exit.Usage("--migrate, --check, --held, --release and --dry-run exclude each other")
	case f.print && !f.migrate:
		return exit.Usage("--print needs --migrate: it prints the SQL")
	case f.skip && !releasing:
		return exit.Usage("--skip needs --release KEY")
	case f.print && f.db == "":
		return f.printSchema(con, outbox.DialectPostgres)
	case f.db == "":
		return exit.Usage("--db is missing: name the database, as postgres://USER@HOST/DATABASE " +
			"or sqlite:FILE")
	case modes == 0 && f.stream == "":
		return exit.Usage("--stream is missing: name the stream to put to")
	}
	if err := f.checkMode(c, modes); err != nil {
		return err
	}
	if err := f.table.Validate(); err != nil {
		return exit.Usage("%w", err)
	}
	if f.print {
		dialect, err := dialectOf(f.db)
		if err != nil {
			return err
		}
		return f.printSchema(con, dialect)
	}
	return f.open(c, con)
}

// checkMode refuses flags that have no effect.
func (f *relayFlags) checkMode(c *cobra.Command, modes int) error {
	if f.failover < 100*time.Millisecond {
		return exit.Usage("--failover %s: want 100ms or more", f.failover)
	}
	for _, name := range []string{"once", "dead-letter", "failover", "metrics", "keys"} {
		if modes > 0 && c.Flags().Changed(name) {
			return exit.Usage("--%s has no effect with --migrate, --check, --held, --release and "+
				"--dry-run: leave it out", name)
		}
	}
	return nil
}

// open opens the database and carries the mode out.
func (f *relayFlags) open(c *cobra.Command, con *console.Console) error {
	ctx := c.Context()
	db, closeDB, err := openDatabase(ctx, f.db, f.migrate)
	if err != nil {
		return err
	}
	defer closeDB()
	if f.table, err = outbox.Adapt(ctx, db, f.table); err != nil {
		return relayError(err, f.stream)
	}
	switch {
	case f.migrate:
		return f.makeTables(ctx, con, db)
	case f.check:
		return f.checkTables(ctx, con, db)
	case f.held:
		return f.listHeld(ctx, con, db)
	case c.Flags().Changed("release"):
		return f.releaseKey(ctx, con, db)
	case f.dryly:
		return f.printRows(ctx, con, db)
	}
	return f.relay(ctx, con, db)
}

// dialectOf returns the kind of database that a URL names.
func dialectOf(db string) (outbox.Dialect, error) {
	scheme, _, _ := strings.Cut(db, ":")
	switch scheme {
	case "postgres", "postgresql":
		return outbox.DialectPostgres, nil
	case "sqlite":
		return outbox.DialectSQLite, nil
	}
	return "", exit.Usage("--db: the database must begin with postgres:// or sqlite:")
}

// openDatabase opens a database. A SQLite file that is not there is made only with create.
func openDatabase(
	ctx context.Context, db string, create bool,
) (outbox.DB, func(), error) {
	dialect, err := dialectOf(db)
	if err != nil {
		return nil, nil, err
	}
	if dialect == outbox.DialectPostgres {
		pool, err := pgxpool.New(ctx, db)
		if err != nil {
			return nil, nil, exit.Usage("--db: %w", err)
		}
		return outbox.Postgres(pool), pool.Close, nil
	}
	opened, err := openSQLite(ctx, db, "runnel relay --migrate", create)
	if err != nil {
		return nil, nil, err
	}
	return outbox.SQLite(opened), func() { _ = opened.Close() }, nil
}

// relay relays rows.
func (f *relayFlags) relay(ctx context.Context, con *console.Console, db outbox.DB) (err error) {
	aws, err := f.to.Load(ctx)
	if err != nil {
		return err
	}
	ownKeys, leave, err := f.keys.Join(ctx, aws)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	r, err := outbox.New(outbox.Config{
		DB: db, Table: f.table, Failover: f.failover, DeadLetter: f.deadLetter, Once: f.once,
		Logger: con.Logger(),
		Producer: producer.Config{
			Stream: f.stream, Kinesis: awsclient.Kinesis(aws), Keys: ownKeys,
		},
	})
	if err != nil {
		return exit.Usage("%w", err)
	}
	stopMetrics, err := serveMetrics(ctx, con, f.metrics, relayPage(r, streamref.Name(f.stream)))
	if err != nil {
		return err
	}
	defer stopMetrics()
	start := time.Now()
	stop := con.Watch(ctx, func() string { return relayLine(f.table.Name, r.Stats(), start) })
	err = r.Run(ctx)
	stop()
	if err == nil || errors.Is(err, outbox.ErrHeld) {
		con.Say("%s", relayLine(f.table.Name, r.Stats(), start))
	}
	if f.once && ctx.Err() != nil {
		return exit.ErrInterrupt
	}
	return relayError(err, f.stream)
}

// relayError gives an error its exit status.
func relayError(err error, stream string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, outbox.ErrHeld):
		return &exit.Error{Status: exit.StatusNo, Err: fmt.Errorf("%w; runnel relay --held lists "+
			"them, and --release lets one go on", err)}
	case errors.Is(err, outbox.ErrUnfit):
		for _, missing := range []string{"no such table", "no column", "no index", "own tables"} {
			if strings.Contains(err.Error(), missing) {
				return exit.Usage("%w; runnel relay --migrate makes what is missing", err)
			}
		}
		return exit.Usage("%w", err)
	case errors.As(err, new(*pgconn.ConnectError)):
		return databaseError(err, "--db")
	case errors.Is(err, outbox.ErrOtherStream):
		return exit.Usage("%w", err)
	}
	return exit.Outside(endpoint.Hint(err, stream))
}
