package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/server"
)

func fsckCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "fsck DIR",
		Short: "Check a data directory and explain its contents; changes nothing",
		Long: `Check a data directory and explain its contents; changes nothing.

It reads the log, the snapshot and every segment, checks every checksum and the order of the
records, and compares the files with one another. No server may be using the directory.

A kill or a power cut may leave an unfinished frame at the end of the log. That is no damage,
because no client got an answer for it. For damage the report names the file, the byte and the loss.

Status 0: sound. 1: damaged. 2: no data directory. 3: it cannot be read, it is in use, or a newer
runnel wrote it.`,
		Example: "  runnel fsck runnel-data\n  runnel fsck runnel-data --output json",
		Args:    usage.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			report, err := server.Check(c.Context(), args[0])
			switch {
			case c.Context().Err() != nil:
				return exit.ErrInterrupt
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, server.ErrNoData),
				errors.Is(err, syscall.ENOTDIR):
				return exit.Usage("%s: %w: name the folder of runnel serve --data", args[0], err)
			case err != nil:
				return exit.Outside(fmt.Errorf("check %s: %w", args[0], err))
			}
			if err := rows.Print(con.Out, con.JSON(), report); err != nil {
				return exit.Outside(err)
			}
			if !report.OK {
				return exit.No("the data directory is damaged")
			}
			return nil
		},
	}
}
