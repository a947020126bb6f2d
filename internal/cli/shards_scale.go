package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/keyspace/plan"
	"github.com/runnel-stream/runnel/reshard"
)

func scaleShardsCommand(con *console.Console) *cobra.Command {
	var yes bool
	var to, scalings int
	command := planningCommand(con, &cobra.Command{
		Use:   "scale --to N --stream NAME",
		Short: "Make a stream one of N shards of equal size",
		Long: `Make a stream one of N shards of equal size, in the fewest splits and merges, or by
UpdateShardCount if that takes fewer calls. AWS allows only ten of these in 24 hours, so --scalings
limits them. An interrupted scale continues when it is run again.`,
		Example: "  runnel shards scale --local --stream orders --to 8 --yes",
		Args:    usage.NoArgs,
	}, func(ctx context.Context, of *shardsOf, _ []string) error {
		if to < 1 || to > plan.MaxShards {
			return exit.Usage("--to %d: say how many shards, from 1 to %d", to, plan.MaxShards)
		}
		shards, err := of.list(ctx)
		if err != nil {
			return err
		}
		planned, err := plan.Uniform(reshard.OpenRanges(shards), to, scalings)
		if err != nil {
			return exit.Outside(err)
		}
		return of.showAndApply(ctx, shards, yes, planned)
	})
	command.Flags().BoolVar(&yes, "yes", false, "do it")
	command.Flags().IntVar(&to, "to", 0, "how many shards")
	command.Flags().IntVar(&scalings, "scalings", 10, "how many UpdateShardCount may be used")
	return command
}
