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
		Short: "Check a data directory and explain what is in it; changes nothing",
		Long: `Check a data directory and explain what is in it; changes nothing.

It reads everything: the log, the snapshot and every segment, with every checksum, in their order,
and compares what they say of one another. No server may be using the directory.

What a kill or a power cut leaves at the end of the log, a frame that was not finished, is no
damage: nobody was told that it is there. Damage is told with its file and byte, and with what is
lost by it.

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
