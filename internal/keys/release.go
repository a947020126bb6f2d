package keys

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/usage"
)

func releaseCommand(con *console.Console) *cobra.Command {
	f := &keyTable{}
	var yes bool
	command := &cobra.Command{
		Use:   "release --file FILE | --table NAME NAME…",
		Short: "Take names out of a file or a table of keys, so that their keys are free again",
		Long: `Take names out of a file or a table of keys, so that their keys are free again.

Release a name when no process puts it any more and its last record is read: the next name may get
its key. The command prints the released names. It does nothing without --yes, or if a name is not
there. Names are arguments, or for - lines of standard input.`,
		Example: `  runnel keys release --file keys.ndjson alice --yes
  runnel keys release --local --table tenants alice --yes`,
		Args: usage.AtLeastArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			space, err := f.check()
			if err != nil {
				return err
			}
			names, err := namesOf(con, c, args)
			if err != nil {
				return err
			}
			if f.table != "" {
				return releaseTable(c.Context(), con, f, space, names, yes)
			}
			file, err := openKeyFile(c.Context(), f.file, space)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, file.close()) }()
			return releaseNames(con, file, names, yes)
		},
	}
	f.add(command, "the file of names and keys, of runnel keys map")
	command.Flags().BoolVar(&yes, "yes", false, "release without asking")
	return command
}

func releaseNames(con *console.Console, f *keyFile, names []string, yes bool) error {
	var released []assignment
	for _, name := range names {
		line, known := f.byName[name]
		if !known {
			return exit.Usage("%s has no name %q, or you named it twice; nothing was released",
				f.name, name)
		}
		released = append(released, line)
		delete(f.byName, name)
	}
	if err := printAssignments(con, released); err != nil {
		return err
	}
	if !yes {
		return exit.Usage("nothing was released: say --yes")
	}
	f.lines = slices.DeleteFunc(f.lines, func(line assignment) bool {
		_, stays := f.byName[line.Name]
		return !stays
	})
	return f.save()
}
