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

type fsckFlags struct{ repair, yes bool }

func fsckCommand(con *console.Console) *cobra.Command {
	f := &fsckFlags{}
	command := &cobra.Command{
		Use:   "fsck DIR",
		Short: "Check a data directory, explain its contents, and repair damage",
		Long: `Check a data directory and explain its contents. Without --yes it changes nothing.

It reads the log, the snapshots and every segment, checks every checksum and the order of the
records, and compares the files with one another. No server may be using the directory.

A kill or a power cut may leave an unfinished frame at the end of the log. That is no damage,
because no client got an answer for it. For damage the report names the file, the byte and the loss.

--repair shows what a repair would save and lose. With --yes too, it saves all whole records,
streams and items, writes the list of losses to a file in the directory, and leaves a directory that
serves. A crash leaves the directory as it was or repaired. Copy the directory first if the disk
has room for it.

Status 0: sound, or repaired. 1: damaged. 2: no data directory. 3: it cannot be read or written, it
is in use, or a newer runnel wrote it.`,
		Example: "  runnel fsck runnel-data\n  runnel fsck runnel-data --output json\n" +
			"  runnel fsck runnel-data --repair --yes",
		Args: usage.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case f.yes && !f.repair:
				return exit.Usage("--yes confirms --repair: give both")
			case f.repair:
				report, err := server.Repair(c.Context(), args[0], f.yes)
				return printCheck(con, c, args[0], report, report != nil && report.OK, err)
			}
			report, err := server.Check(c.Context(), args[0])
			return printCheck(con, c, args[0], report, report != nil && report.OK, err)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&f.repair, "repair", false,
		"show what a repair would save and lose; with --yes, repair")
	flags.BoolVar(&f.yes, "yes", false, "with --repair: change the directory")
	return command
}

// printCheck prints the report of a check or a repair, and returns its exit status.
func printCheck(
	con *console.Console, c *cobra.Command, dir string, report rows.Report, ok bool, err error,
) error {
	switch {
	case err == nil:
	case c.Context().Err() != nil:
		return exit.ErrInterrupt
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, server.ErrNoData),
		errors.Is(err, syscall.ENOTDIR):
		return exit.Usage("%s: %w: name the folder of runnel serve --data", dir, err)
	default:
		return exit.Outside(fmt.Errorf("check %s: %w", dir, err))
	}
	if err := rows.Print(con.Out, con.JSON(), report); err != nil {
		return exit.Outside(err)
	}
	if !ok {
		return exit.No("the data directory is damaged")
	}
	return nil
}
