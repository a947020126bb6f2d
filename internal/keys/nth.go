package keys

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// nthLine is a key as `keys nth` prints it.
type nthLine struct {
	N   string `json:"n"` // a string, as the API writes hash keys: it may be above 2^53
	Key string `json:"key"`
}

// Cells implements rows.Row.
func (l nthLine) Cells() []string { return []string{l.Key} }

func nthCommand(con *console.Console) *cobra.Command {
	var space spaceFlag
	var count uint64
	var from string
	command := &cobra.Command{
		Use:   "nth",
		Short: "Print evenly spread keys, from nothing, in their order",
		Long: `Print evenly spread keys, from nothing, in their order.

The middle comes first, then the middles of the halves in turns, and so on: 64, 32, 96, 16, 80, 48,
112, … of 128. However many are taken, from the first one on, any two halves have the same number
of keys, or one more. Any number can be asked for at once: it takes no longer.`,
		Example: `  runnel keys nth --space 128 --count 7
  runnel keys nth --count 4
  runnel keys nth --from 1000000 --output json`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			keys, err := space.space()
			if err != nil {
				return err
			}
			first, err := keyspace.Parse(from)
			if err != nil {
				return exit.Usage("--from: the number of a key: %w", err)
			}
			if count < 1 {
				return exit.Usage("--count 0: want at least 1")
			}
			return printNth(con, c, keys, first, count)
		},
	}
	space.add(command)
	flags := command.Flags()
	flags.Uint64Var(&count, "count", 1, "how many keys")
	flags.StringVar(&from, "from", "0", "the number of the first one, from 0 on")
	return command
}

func printNth(
	con *console.Console, c *cobra.Command, space allocate.Space, first keyspace.Key, count uint64,
) error {
	if last := first.Add(keyspace.Key{Lo: count - 1}); last.Less(first) || !space.Contains(last) {
		return exit.Usage("%w: it has %s keys, so there are no %d from number %s on",
			allocate.ErrSpaceFull, space, count, first)
	}
	out := rows.NewVerbatim(con.Out, con.JSON())
	for i := range count {
		n := first.Add(keyspace.Key{Lo: i})
		key, err := space.Nth(n)
		if err == nil {
			err = out.Row(nthLine{N: n.String(), Key: key.String()})
		}
		if c.Context().Err() != nil {
			err = exit.ErrInterrupt
		}
		if err != nil {
			return errors.Join(err, out.Flush())
		}
	}
	return out.Flush()
}
