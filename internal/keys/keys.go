package keys

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// Command returns `runnel keys` with its subcommands.
func Command(con *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use:   "keys",
		Short: "Hash keys: of names, evenly spread, the next one; how unevenly keys load shards",
		Long: `Hash keys: of names, evenly spread, the next one beside those in use.

The hash key of a record selects its shard. It is the MD5 of the partition key, or the record's
ExplicitHashKey. MD5 spreads many names evenly and few names unevenly; keys from these commands are
even from the first one on.`,
		Example: `  runnel keys hash alice bob --shards 4
  runnel keys nth --count 4
  runnel keys allocate --existing 0,32,9,57 --space 128
  runnel keys map --file keys.ndjson alice bob
  runnel keys rebalance --file keys.ndjson --yes
  runnel keys skew --shards 8 names.txt`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	command.AddCommand(hashCommand(con), nthCommand(con), allocateCommand(con), mapCommand(con),
		releaseCommand(con), rebalanceCommand(con), skewCommand(con))
	return command
}

// spaceFlag is the flag for the key space.
type spaceFlag struct{ text string }

func (f *spaceFlag) add(command *cobra.Command) {
	command.Flags().StringVar(&f.text, "space", "2^128",
		"how many keys there are, from 0 on, as 128 or 2^7; a stream has 2^128")
}

func (f *spaceFlag) space() (allocate.Space, error) {
	space, err := allocate.ParseSpace(f.text)
	if err != nil {
		return space, exit.Usage("--space: %w", err)
	}
	return space, nil
}

// printable returns the name as it is, or quoted if it has control characters, since a terminal
// would execute these.
func printable(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}
