package keys

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// mostAllocated is the highest number of keys in one `keys allocate`: they are held in memory.
const mostAllocated = 10_000_000

type allocateFlags struct {
	space       spaceFlag
	existing    []string
	files       []string
	count, rate uint64
	table, tree bool
}

// keyLine is a key as `keys allocate` prints it.
type keyLine struct {
	Key  string `json:"key"`
	Rate uint64 `json:"rate"`
}

// Cells implements rows.Row.
func (l keyLine) Cells() []string { return []string{l.Key} }

// drawing is a table or a tree of all keys, after an empty line.
type drawing string

// WriteText implements rows.Report.
func (d drawing) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "\n%s\n", string(d))
	return err
}

func allocateCommand(con *console.Console) *cobra.Command {
	f := &allocateFlags{}
	command := &cobra.Command{
		Use:   "allocate",
		Short: "Print the next keys beside those in use, so that balance comes back",
		Long: `Print the next keys beside those in use, so that balance comes back.

The next key is always in the half of the key space with the lower rate, then in the half of that
half with the lower rate, and so on. A key in use may have a rate, as KEY=RATE, in any whole unit
that is the same for all: records or bytes a second. Without, it is 1, and the balance is that of
the numbers of keys.

The command stores nothing: add the printed keys to those in use, and leave released ones out.`,
		Example: `  runnel keys allocate --space 128 --existing 0,32,9,57 --count 8
  runnel keys allocate --space 128 --existing 64=1500,32=20 --rate 300 --tree
  echo 64 32 | runnel keys allocate --space 128 --existing-file -`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runAllocate(con, c, f) },
	}
	f.space.add(command)
	flags := command.Flags()
	flags.StringArrayVar(&f.existing, "existing", nil,
		"keys in use, apart by commas or blanks, each KEY or KEY=RATE")
	flags.StringArrayVar(&f.files, "existing-file", nil,
		"a file of keys in use, as --existing, on any lines; - is standard input")
	flags.Uint64Var(&f.count, "count", 1, "how many keys")
	flags.Uint64Var(&f.rate, "rate", 1, "the rate of each of them, in the unit of the others")
	flags.BoolVar(&f.table, "table", false, "then print all keys by the shards that they split")
	flags.BoolVar(&f.tree, "tree", false, "then print all keys as a tree of halves")
	return command
}

func runAllocate(con *console.Console, c *cobra.Command, f *allocateFlags) error {
	space, err := f.space.space()
	switch {
	case err != nil:
		return err
	case f.count < 1 || f.count > mostAllocated:
		return exit.Usage("--count %d: want 1 to %d", f.count, mostAllocated)
	case con.JSON() && (f.table || f.tree):
		return exit.Usage("--table and --tree are text: leave out --output json")
	}
	allocator := allocate.New(space)
	if err := addExisting(con, c, f, allocator); err != nil {
		return err
	}
	keys := make([]string, 0, f.count)
	for range f.count {
		key, err := allocator.AllocateRated(f.rate)
		if err != nil {
			return exit.Usage("%d keys are in use, and %d of %d new ones found room: %w",
				allocator.Len()-len(keys), len(keys), f.count, err)
		}
		if c.Context().Err() != nil {
			return exit.ErrInterrupt
		}
		keys = append(keys, key.String())
	}
	out := rows.NewVerbatim(con.Out, con.JSON())
	for _, key := range keys {
		if err := out.Row(keyLine{Key: key, Rate: f.rate}); err != nil {
			return err
		}
	}
	if f.table {
		err = out.Report(drawing(strings.TrimSuffix(allocator.Table(), "\n")))
	}
	if f.tree {
		err = errors.Join(err, out.Report(drawing(allocator.Tree())))
	}
	return errors.Join(err, out.Flush())
}

// addExisting takes the keys of the flags and the files.
func addExisting(
	con *console.Console, c *cobra.Command, f *allocateFlags, to *allocate.Allocator,
) error {
	add := func(text string) error {
		keys, err := allocate.ParseRated(text)
		if err == nil {
			err = to.AddRated(keys...)
		}
		if err != nil {
			return exit.Usage("%w", err)
		}
		return nil
	}
	for _, text := range f.existing {
		if err := add(text); err != nil {
			return fmt.Errorf("--existing: %w", err)
		}
	}
	for _, name := range f.files {
		if err := input.EachLine(c.Context(), con.In, name, add); err != nil {
			return err
		}
	}
	return nil
}
