package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/sink/archive"
)

// verifyResult is the output of verify: the report, which has the text, and its verdict.
type verifyResult struct {
	OK bool `json:"ok"`
	*archive.Report
}

func verifyCommand(con *console.Console) *cobra.Command {
	var options archive.VerifyOptions
	var place placeFlags
	command := &cobra.Command{
		Use:   "verify DIR|s3://BUCKET/PREFIX",
		Short: "Prove from an archive that nothing is lost, doubled or out of order",
		Long: `Prove from an archive that nothing is lost, doubled or out of order.

From the archive alone: every shard's objects follow one another from the start to the tip, also
across splits and merges, their contents match their counts and checksums, and each position is
there once. With --source, the file that was put: every record of it is in the archive, once, and
the first occurrences of each key's records are in the file's order.

A gap is a place where the stream's retention period removed records before a worker read them. The
archive knows each one, and it is a violation; --allow-gaps accepts them.

A record that the stream holds at two positions is a double, and a violation. Records of put --order
plain and chained have no identity, and a retry may double them: for them there is --allow-doubles.

Status 0: compared, and nothing is violated. 1: a violation, or nothing is there to compare (a
folder without an archive, a stream without a link). 2: no such folder, or a source that proves
nothing: it is empty or no NDJSON, a record has no --id or --key, or two records have one --id.
3: the archive cannot be read.`,
		Example: "  runnel verify archive\n" +
			"  runnel verify archive --source orders.ndjson --id id --key id",
		Args: usage.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			place.like(c)
			var report *archive.Report
			reader, err := place.reader(c.Context(), args[0])
			if err == nil {
				report, err = reader.Verify(c.Context(), options)
			}
			switch {
			case c.Context().Err() != nil:
				return exit.ErrInterrupt
			case errors.As(err, new(*exit.Error)):
				return err
			case errors.Is(err, archive.ErrUnusableSource),
				errors.Is(err, archive.ErrStreamNotFound), options.Validate() != nil:
				return exit.Usage("%w", err)
			case err != nil:
				return exit.Outside(err)
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
	place.addFlags(command, false, true)
	flags := command.Flags()
	flags.StringVar(&options.Source, "source", "",
		"the file that was put: NDJSON, plain, gzip or zstd")
	flags.StringVar(&options.ID, "id", "",
		"with --source: the field that names one record, or a JSON pointer")
	flags.StringVar(&options.Key, "key", "",
		"with --source: the partition key; without it order is not checked")
	flags.BoolVar(&options.AllowDoubles, "allow-doubles", false,
		"doubles are listed and are no violation: for put --order plain and chained")
	flags.StringVar(&options.Stream, "stream", "",
		"NAME or NAME@MILLISECONDS, if the archive holds several")
	flags.BoolVar(&options.AllowGaps, "allow-gaps", false,
		"accept records that the retention period removed before they were archived")
	flags.IntVar(&options.Examples, "examples", 10, "how many of each finding to describe")
	return command
}
