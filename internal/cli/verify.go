package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/sink/archive"
)

// verifyResult is what `verify --output json` prints.
type verifyResult struct {
	OK bool `json:"ok"`
	*archive.Report
}

func (a *app) verify() *cobra.Command {
	var options archive.VerifyOptions
	command := &cobra.Command{
		Use:   "verify DIR",
		Short: "Prove from an archive that nothing is lost, doubled or out of order",
		Long: `Prove from an archive that nothing is lost, doubled or out of order.

From the archive alone: every shard's objects follow one another from the start to the tip, also
across splits and merges, their contents match their counts and checksums, and no position stands
twice. With --source, the file that was put: every record is there, and the first occurrences of
each key's records stand in the file's order.

A gap is a place where the stream's retention period removed what was there before a worker read
it. The archive knows each one; --allow-gaps accepts them.

Records that the stream itself holds twice, because an acknowledgement was lost, are listed and are
no violation. Status 1 if anything is violated.`,
		Example: "  runnel verify archive --source orders.ndjson.gz --id id --key customer",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			report, err := archive.Verify(c.Context(), args[0], options)
			switch {
			case c.Context().Err() != nil:
				return errInterrupt
			case errors.Is(err, archive.ErrSource), errors.Is(err, fs.ErrNotExist),
				options.Validate() != nil:
				return usageError("%w", err)
			case err != nil:
				return outsideError(err)
			}
			if err := a.printReport(report); err != nil {
				return err
			}
			if !report.OK() {
				return answerNo("the archive is not as it must be")
			}
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Source, "source", "",
		"the file that was put: NDJSON, plain, gzip or zstd")
	flags.StringVar(&options.ID, "id", "",
		"with --source: the field that tells records apart, or a JSON pointer")
	flags.StringVar(&options.Key, "key", "",
		"with --source: the partition key; without it order is not checked")
	flags.StringVar(&options.Stream, "stream", "",
		"NAME or NAME@MILLISECONDS, if the archive holds several")
	flags.BoolVar(&options.AllowGaps, "allow-gaps", false,
		"accept what the stream's retention period removed before it was archived")
	flags.IntVar(&options.Examples, "examples", 10, "how many of each finding to describe")
	return command
}

func (a *app) printReport(report *archive.Report) error {
	if a.output != "json" {
		return report.WriteText(a.Out)
	}
	if err := json.NewEncoder(a.Out).Encode(verifyResult{report.OK(), report}); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
