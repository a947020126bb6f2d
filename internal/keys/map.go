package keys

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/rows"
)

type mapFlags struct {
	keyTable
	rate uint64
}

func mapCommand(con *console.Console) *cobra.Command {
	f := &mapFlags{}
	command := &cobra.Command{
		Use:   "map --file FILE | --table NAME [NAME…]",
		Short: "Give names keys of their own, and keep them in a file or a table",
		Long: `Give names keys of their own, and keep them in a file or a table: a known
name keeps its key, and a new one gets the key that restores balance, as from runnel keys allocate.
It prints each name's key; without names, all keys. Names are arguments, or for - lines
of standard input.

The file is lines of {"name":…,"key":…,"rate":…}. It is replaced at once when all names have keys,
before anything is printed, and not at all otherwise. FILE.lock keeps two commands apart.

A table in DynamoDB is for many processes at the same time: runnel put --keys NAME gives records
the keys of their names, and new names new keys. Up to 90 names are written at once.`,
		Example: `  runnel keys map --file keys.ndjson alice bob
  cut -d, -f1 users.csv | runnel keys map --file keys.ndjson -
  runnel keys map --file keys.ndjson --output json
  runnel keys map --local --table tenants alice bob`,
		RunE: func(c *cobra.Command, args []string) error { return runMap(con, c, f, args) },
	}
	f.add(command, "the file of names and keys; made if it is not there")
	command.Flags().Uint64Var(&f.rate, "rate", 1,
		"the rate of each new name, in the unit of the others")
	return command
}

func runMap(con *console.Console, c *cobra.Command, f *mapFlags, args []string) (err error) {
	space, err := f.check()
	if err != nil {
		return err
	}
	names, err := namesOf(con, c, args)
	if err != nil {
		return err
	}
	if f.table != "" {
		return mapTable(c.Context(), con, &f.keyTable, space, f.rate, names, len(args) == 0)
	}
	file, err := openKeyFile(c.Context(), f.file, space)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.close()) }()
	before := len(file.lines)
	lines := file.lines
	if len(args) > 0 {
		lines = nil
	}
	for _, name := range names {
		line, err := file.assign(name, f.rate)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	if len(file.lines) > before {
		if err := file.save(); err != nil {
			return err
		}
	}
	return printAssignments(con, lines)
}

// namesOf returns the names in the arguments, or for a single "-" those of standard input.
func namesOf(con *console.Console, c *cobra.Command, args []string) (names []string, err error) {
	take := func(name string) error {
		if err := input.CheckKey(name); err != nil {
			return exit.Usage("%q: %w", name, err)
		}
		if len(names) == mostAllocated {
			return exit.Usage("more than %d names at once", mostAllocated)
		}
		names = append(names, name)
		return nil
	}
	if slices.Equal(args, []string{"-"}) {
		return names, input.EachLine(c.Context(), con.In, "-", take)
	}
	for _, name := range args {
		if err := take(name); err != nil {
			return nil, err
		}
	}
	return names, nil
}

func printAssignments(con *console.Console, lines []assignment) error {
	out := rows.NewVerbatim(con.Out, con.JSON())
	for _, line := range lines {
		if err := out.Row(line); err != nil {
			return err
		}
	}
	return out.Flush()
}
