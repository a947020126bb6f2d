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

func backupCommand(con *console.Console) *cobra.Command {
	var to string
	command := &cobra.Command{
		Use:   "backup DATA --to DIR|FILE",
		Short: "Copy a data directory, also while a server uses it",
		Long: `Copy a data directory, also while a server uses it.

The copy holds everything that was acknowledged before the command began. It is a data directory:
give it to runnel serve --data. A target that ends with .tar.zst or .tar.gz is a packed file, which
tar unpacks; any other target is a folder, which must be new or empty. Names of other packed files,
as x.tar or x.zip, are refused. A backup overwrites nothing, and the target gets its name when it is
complete and synced.

A running server goes on. While its log is copied it postpones its checkpoints, so the log may take
up to 1 GiB more for that time. Do not copy a directory in use by other means: the files would not
fit together.

The copy is checked as by runnel fsck. A packed copy is not; its directory is, if no server uses it.

Status 0: the copy is complete. 1: it is, but the directory is damaged, as the report says. 2: no
data directory, or the target exists, has a refused name, or has no folder around it. 3: it cannot
be read or written, another backup runs, or a newer runnel wrote it.`,
		Example: "  runnel backup runnel-data --to backup-1\n" +
			"  runnel backup runnel-data --to runnel.tar.zst",
		Args: usage.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if to == "" {
				return exit.Usage("--to is missing: name a folder, or a file as runnel.tar.zst")
			}
			report, err := server.Backup(c.Context(), args[0], to)
			switch {
			case c.Context().Err() != nil:
				return exit.ErrInterrupt
			case errors.Is(err, server.ErrTargetExists), errors.Is(err, server.ErrTargetInside),
				errors.Is(err, server.ErrTargetEnding), errors.Is(err, server.ErrTargetParent):
				return exit.Usage("--to %w", err)
			case errors.Is(err, server.ErrNoData), noFolder(err, args[0]):
				return exit.Usage("%s: %w: name the folder of runnel serve --data", args[0], err)
			case err != nil:
				return exit.Outside(fmt.Errorf("back up %s: %w", args[0], err))
			}
			if err := rows.Print(con.Out, con.JSON(), report); err != nil {
				return exit.Outside(err)
			}
			if len(report.Damage) > 0 {
				return exit.No("the data directory is damaged")
			}
			return nil
		},
	}
	command.Flags().StringVar(&to, "to", "",
		"the folder, or the file (.tar.zst, .tar.gz), to copy to")
	return command
}

// noFolder reports whether an error says that dir is no folder.
func noFolder(err error, dir string) bool {
	var of *fs.PathError
	return errors.As(err, &of) && of.Path == dir &&
		(errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR))
}
