package cli

import (
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/demo"
	"github.com/runnel-stream/runnel/internal/usage"
)

func demoCommand(con *console.Console) *cobra.Command {
	var o demo.Options
	command := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole pipeline on this machine, with nothing installed",
		Long: `Show the whole pipeline on this machine, with nothing installed: a server on a
loopback port, a producer that keeps order per key, a fleet of workers that share the shards through
the lease table alone, and an archive that takes each record exactly once. While records flow shards
are split and merged, the server is killed with -9 and started again on its data, and one worker is
stopped without a goodbye.

The verdict is computed from the archive itself. Status 1 if anything is lost, doubled or out of
order. Without --input it makes repository events from --seed.`,
		Example: `  runnel demo
  runnel demo --input events.ndjson.gz --key repo --dir ./demo`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return demo.Run(c.Context(), con, o) },
	}
	flags := command.Flags()
	flags.IntVar(&o.Records, "records", 100_000, "how many events to make")
	flags.IntVar(&o.Shards, "shards", 4, "shards to begin with")
	flags.IntVar(&o.Workers, "workers", 3,
		"workers of the fleet, at least 2; one is stopped midway")
	flags.Uint64Var(&o.Seed, "seed", 1, "the seed of the events")
	flags.StringVar(&o.Input, "input", "",
		"a file of NDJSON, plain, gzip or zstd, in place of made events")
	flags.StringVar(&o.Key, "key", "",
		"with --input: the partition key, a field's name or a JSON pointer")
	flags.StringVar(&o.Dir, "dir", "",
		"keep data and archive in this folder (default: a temporary one, removed)")
	return command
}
