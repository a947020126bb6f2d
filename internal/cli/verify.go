package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/compare"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/follow"
	"github.com/runnel-stream/runnel/internal/opener"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/sink/archive"
	"github.com/runnel-stream/runnel/sink/archive/table"
)

// verifyResult is the output of verify: the report, which has the text, and its verdict.
type verifyResult struct {
	OK bool `json:"ok"`
	*archive.Report
}

type verifyFlags struct {
	from           endpoint.Flags
	place          placeFlags
	options        archive.VerifyOptions
	against, since string
	table          string
	complete       bool
	void           voidFlag
}

func verifyCommand(con *console.Console) *cobra.Command {
	f := &verifyFlags{}
	command := &cobra.Command{
		Use:   "verify DIR|s3://BUCKET/PREFIX",
		Short: "Prove from an archive that nothing is lost, doubled or out of order",
		Long: `Prove from an archive that nothing is lost, doubled or out of order.

From the archive alone: every shard's objects follow one another from the start to the tip, also
across splits and merges, their contents match their counts and checksums, and each position is
there once. With --source, the file that was put: every record of it is in the archive, once, and
the first occurrences of each key's records are in the file's order.

With --against-stream, the stream of the archive: up to each shard's tip every record of the stream
is in the archive, with the same data and key, and no other one is. Records that arrived more than
the stream's retention period less an hour ago are not compared, and are counted. Records behind
the tips are not archived yet; with --complete they are a violation. --void must be as it was for
runnel archive.

With --table, a table of the archive: each of its objects has the records of its link and its
folder, and no other file is there. Links that are not derived yet are counted, and with --complete
they are a violation.

A gap is a place where the stream's retention period removed records before a worker read them. The
archive knows each one, and it is a violation; --allow-gaps accepts them.

A record that the stream holds at two positions is a double, and a violation. Records of put --order
plain and chained have no identity, and a retry may double them: for them there is --allow-doubles.

Status 0: compared, and nothing is violated. 1: a violation, or nothing is there to compare (a
folder without an archive, a stream without a link). 2: no such folder, an archive of other streams,
or a source that proves nothing: it is empty or no NDJSON, a record has no --id or --key, or two
records have one --id. 3: the archive or the stream cannot be read.`,
		Example: "  runnel verify archive\n" +
			"  runnel verify archive --source orders.ndjson --id id --key id\n" +
			"  runnel verify archive --local --against-stream orders",
		Args: usage.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.place.like(c)
			if err := notEmpty(c, "against-stream", "since", "table"); err != nil {
				return err
			}
			report, err := f.verify(c.Context(), con, args[0])
			if err != nil {
				return f.outcome(c.Context(), err)
			}
			result := verifyResult{report.OK(), report}
			if err := rows.Print(con.Out, con.JSON(), result); err != nil {
				return err
			}
			if !report.OK() {
				return exit.No("the archive is not as it must be")
			}
			return nil
		},
	}
	f.from.AddFlags(command, false)
	f.place.addFlags(command, false, false)
	flags := command.Flags()
	f.addComparisons(flags)
	flags.BoolVar(&f.options.AllowDoubles, "allow-doubles", false,
		"doubles are listed and are no violation: for put --order plain and chained")
	usage.StreamVar(flags, &f.options.Stream, "stream",
		"NAME or NAME@MILLISECONDS, or the ARN, if the archive holds several")
	flags.BoolVar(&f.options.AllowGaps, "allow-gaps", false,
		"accept records that the retention period removed before they were archived")
	flags.IntVar(&f.options.Examples, "examples", 10, "how many of each finding to describe")
	return command
}

// addComparisons adds the flags of the comparisons, with a source and with the stream.
func (f *verifyFlags) addComparisons(flags *pflag.FlagSet) {
	flags.StringVar(&f.options.Source, "source", "",
		"the file that was put: NDJSON, plain, gzip or zstd")
	flags.StringVar(&f.options.ID, "id", "",
		"with --source: the field that names one record, or a JSON pointer")
	flags.StringVar(&f.options.Key, "key", "",
		"with --source: the partition key; without it order is not checked")
	usage.StreamVar(flags, &f.against, "against-stream",
		"compare with this stream, record by record, up to the archive's tips")
	flags.StringVar(&f.since, "since", "", "with --against-stream: compare only records that "+
		"arrived at this RFC 3339 time or later, as for an archive --from a time")
	f.void.addFlag(flags)
	flags.StringVar(&f.table, "table", "", "compare the archive with this table of it")
	flags.BoolVar(&f.complete, "complete", false, "with --against-stream and --table: a record "+
		"that is not archived or derived yet is a violation")
}

// verify verifies the archive, and compares it with its stream and with a table if they are named.
func (f *verifyFlags) verify(
	ctx context.Context, con *console.Console, from string,
) (*archive.Report, error) {
	since, err := f.check()
	if err != nil {
		return nil, err
	}
	f.options.Stream = streamref.Name(f.options.Stream)
	store, err := f.place.source(ctx, from)
	if err != nil {
		return nil, err
	}
	var by *table.Table
	if f.table != "" {
		if by, err = (&tableFlags{name: f.table}).open(ctx, store, ""); err != nil {
			return nil, err
		}
	}
	if by != nil {
		switch {
		case f.options.Stream == "" && f.against == "":
			f.options.Stream = by.Stream()
		case !strings.HasPrefix(f.options.Stream+streamref.Name(f.against)+"@", by.Stream()+"@"):
			return nil, exit.Usage("table %s is of stream %s, and not of %s", f.table, by.Stream(),
				f.options.Stream+f.against)
		}
	}
	report, err := f.compare(ctx, con, archive.NewReader(store), since)
	if err != nil || by == nil {
		return report, err
	}
	if report.Table, err = by.Verify(ctx, f.options.Examples); err != nil {
		return nil, err
	}
	report.Table.Complete = f.complete
	return report, nil
}

// compare verifies the archive, and compares it with its stream if that is named.
func (f *verifyFlags) compare(
	ctx context.Context, con *console.Console, reader *archive.Reader, since time.Time,
) (*archive.Report, error) {
	if f.against == "" {
		return reader.Verify(ctx, f.options)
	}
	cfg, err := f.from.Load(ctx)
	if err != nil {
		return nil, err
	}
	return compare.Run(ctx, compare.Config{
		Stream: f.against, Kinesis: awsclient.Kinesis(cfg), Archive: reader,
		Verify: f.options, Since: since, Complete: f.complete, Void: opener.Void(f.void),
		OnNotice: func(n follow.Notice) {
			if n.Kind == follow.Trouble {
				con.Say("%s", n)
			}
		},
	})
}

// check checks the flags of the comparison, and reads --since.
func (f *verifyFlags) check() (since time.Time, err error) {
	switch {
	case f.against == "" && f.table == "" && f.complete:
		return since, exit.Usage("--complete needs --against-stream or --table: name the stream")
	case f.against == "" && f.since != "":
		return since, exit.Usage("--since needs --against-stream: name the stream")
	case f.void != 0 && f.against == "":
		return since, exit.Usage("--void needs --against-stream: name the stream")
	case opener.Void(f.void) == opener.VoidStop:
		return since, exit.Usage("--void stop: the stream is read to the archive's tips: want " +
			"auto, drop or deliver, as the archive was made")
	case f.against != "" && f.options.Source != "":
		return since, exit.Usage("--source and --against-stream: compare with one at a time")
	case f.against != "" && f.options.Stream != "":
		return since, exit.Usage("--stream and --against-stream: the latter names the stream")
	case f.since == "":
		return since, nil
	}
	return parseTime("--since", f.since)
}

// outcome sets the exit status of an error.
func (f *verifyFlags) outcome(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return exit.ErrInterrupt
	case errors.As(err, new(*exit.Error)):
		return err
	case errors.Is(err, archive.ErrUnusableSource), errors.Is(err, archive.ErrStreamNotFound),
		errors.Is(err, compare.ErrOther), errors.Is(err, compare.ErrSince),
		f.options.Validate() != nil:
		return exit.Usage("%w", err)
	}
	return exit.Outside(endpoint.Hint(err, f.against))
}
