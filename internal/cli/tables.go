package cli

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/s3store"
	"github.com/runnel-stream/runnel/sink/archive/table"
)

// tableFlags name a table of an archive.
type tableFlags struct{ name, layout string }

func (f *tableFlags) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.name, "table", "", "the table's name: its folder is tables/NAME")
	flags.StringVar(&f.layout, "layout", "",
		"minute, hour or day; the table's first use fixes it (default: as the table has it)")
}

// check reports wrong flags, before anything is written.
func (f *tableFlags) check() error {
	if f.layout == "" {
		return nil
	}
	if f.name == "" {
		return exit.Usage("--layout needs --table: name the table")
	}
	if _, err := table.ParseLayout(f.layout); err != nil {
		return exit.Usage("--layout: %w", err)
	}
	return nil
}

// open opens the table, and makes it if a layout is given.
func (f *tableFlags) open(
	ctx context.Context, store table.Store, stream string,
) (*table.Table, error) {
	cfg := table.Config{Store: store, Name: f.name, Layout: table.Layout(f.layout), Stream: stream}
	t, err := table.Open(ctx, cfg)
	switch {
	case err == nil:
		return t, nil
	case ctx.Err() != nil:
		return nil, exit.ErrInterrupt
	case errors.Is(err, table.ErrNotFound) && f.layout == "":
		return nil, exit.Usage("%w; make it with --layout minute, hour or day", err)
	case errors.Is(err, table.ErrNotFound), errors.Is(err, table.ErrName),
		errors.Is(err, table.ErrOther):
		return nil, exit.Usage("%w", err)
	}
	return nil, exit.Outside(err)
}

// derived is the table that a command writes; none if the flags name none.
type derived struct {
	con     *console.Console
	flags   *tableFlags
	store   table.Store
	stream  string
	again   bool // derive all links anew
	deriver atomic.Pointer[table.Deriver]
}

// start starts the deriving of the whole archive. With persist it goes on after errors that may
// pass.
func (d *derived) start(ctx context.Context, persist bool) error {
	if d.flags.name == "" {
		return nil
	}
	t, err := d.flags.open(ctx, d.store, d.stream)
	if err != nil {
		return err
	}
	// It outlives the command's context, so that the last commits come into the table.
	deriver := t.Start(context.WithoutCancel(ctx), table.Options{
		Persist: persist, Again: d.again,
		OnOutage: func(err error) {
			d.con.Logger().Warn("the table cannot be written: will try again", "table",
				d.flags.name, "error", err)
		},
		OnFailure: func(shard runnel.ShardID, err error) {
			d.con.Logger().Error("the table has no later records of a shard", "table",
				d.flags.name, "shard", shard, "error", err)
		},
	})
	d.deriver.Store(deriver)
	return tableError(ctx, deriver.All(ctx))
}

// take takes a writer's tip.
func (d *derived) take(tip archive.Tip) {
	if deriver := d.deriver.Load(); deriver != nil {
		deriver.Take(tip)
	}
}

// lastCommits is the time for the last commits of a worker that ends. The next one derives the
// rest.
const lastCommits = 10 * time.Second

// finish waits for the rest: with all, that of the whole archive.
func (d *derived) finish(ctx context.Context, all bool) error {
	deriver := d.deriver.Load()
	if deriver == nil {
		return nil
	}
	if all {
		if err := deriver.All(ctx); err != nil {
			return tableError(ctx, err)
		}
		return tableError(ctx, deriver.Wait(ctx))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCommits)
	defer cancel()
	if err := deriver.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return tableError(ctx, err)
	}
	d.con.Say("table %s: some links are not derived yet: runnel tables goes on, or the next worker",
		d.flags.name)
	return nil
}

// tableError sets the exit status.
func tableError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) ||
		errors.Is(err, archive.ErrStoreUnavailable)): // it was waited out until then
		return exit.ErrInterrupt
	}
	return exit.Outside(err)
}

// line returns the counts for the command's last line; "" without a table.
func (d *derived) line() string {
	deriver := d.deriver.Load()
	if deriver == nil {
		return ""
	}
	n := deriver.Counts()
	return fmt.Sprintf("table %s: %s records of %s links derived", d.flags.name,
		console.Thousands(n.Records), console.Thousands(n.Links))
}

func (d *derived) close() {
	if deriver := d.deriver.Load(); deriver != nil {
		deriver.Close()
	}
}

func tablesCommand(con *console.Console) *cobra.Command {
	var place placeFlags
	var flags tableFlags
	var of string
	var follow, again bool
	command := &cobra.Command{
		Use:   "tables DIR|s3://BUCKET/PREFIX --table NAME",
		Short: "Derive a table from an archive: records by minute, hour or day",
		Long: `Derive a table from an archive: records by minute, hour or day.

The table is in the archive's folder, as tables/NAME/2020/02/02/15/55/….ndjson.gz: for each link,
one object of gzipped NDJSON in the folder of each minute of its records, by their arrival times in
UTC. A listing of the table has each record once. The names and contents depend on the archive
alone, so any number of processes may derive one table, and the command may end and begin again at
any time.

The first use fixes the layout. With --follow the command goes on until SIGINT or SIGTERM, and
derives new links as they come. runnel archive --table does the same beside archiving, and runnel
verify --table compares the table with the archive.`,
		Example: "  runnel tables archive --table by-hour --layout hour",
		Args:    usage.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			place.like(c)
			if flags.name == "" {
				return exit.Usage("--table is missing: name the table")
			}
			if err := flags.check(); err != nil {
				return err
			}
			store, err := place.source(c.Context(), args[0])
			if err != nil {
				return err
			}
			by := &derived{con: con, flags: &flags, store: store, again: again}
			if by.stream, err = tableStream(c.Context(), store, of, args[0], flags); err != nil {
				return err
			}
			every := defaultFollow
			if s3store.IsURL(args[0]) {
				every = everyInS3
			}
			return runTables(c.Context(), by, follow, every)
		},
	}
	place.addFlags(command, true, true)
	flags.addFlags(command)
	command.Flags().StringVar(&of, "stream-of", "",
		"NAME: the stream, if the archive holds several and the table is new")
	command.Flags().BoolVar(&again, "again", false,
		"derive all objects anew, as after a loss of some")
	command.Flags().BoolVar(&follow, "follow", false, "go on with new links as they come")
	return command
}

// defaultFollow is the pause between two looks at a folder; in S3 it is everyInS3.
const defaultFollow = 5 * time.Second

// tableStream returns the name of the stream of a new table; "" for one that is there.
func tableStream(
	ctx context.Context, store table.Store, of, place string, flags tableFlags,
) (string, error) {
	if flags.layout == "" {
		return of, nil
	}
	streams, err := archive.NewReader(store).Streams(ctx)
	if err != nil {
		return "", outcome(ctx, err)
	}
	var names []string
	for _, stream := range streams {
		if of == "" || stream.Name == of {
			if len(names) == 0 || names[len(names)-1] != stream.Name {
				names = append(names, stream.Name)
			}
		}
	}
	switch {
	case len(streams) == 0:
		return "", exit.Usage("%s holds no archive: name the place of runnel archive --to, which "+
			"holds NAME@MILLISECONDS", place)
	case len(names) == 0:
		return "", exit.Usage("--stream-of %s: the archive has no such stream", of)
	case len(names) > 1:
		return "", exit.Usage("the archive holds several streams: choose one with --stream-of: %s",
			names)
	}
	return names[0], nil
}

func runTables(ctx context.Context, by *derived, follow bool, every time.Duration) error {
	if err := by.start(ctx, follow); err != nil {
		return err
	}
	defer by.close()
	stop := by.con.Watch(ctx, by.line)
	defer stop()
	err := by.finish(ctx, true)
	for follow && !errors.Is(err, archive.ErrStoreRefused) && retry.Wait(ctx, every) == nil {
		// The log has the shards that have failed; the others go on.
		err = by.finish(ctx, true)
	}
	if follow && errors.Is(err, exit.ErrInterrupt) {
		err = nil
	}
	if err == nil {
		stop()
		by.con.Say("%s", by.line())
	}
	return err
}
