package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

func mergeShardsCommand(con *console.Console) *cobra.Command {
	var yes bool
	command := planningCommand(con, &cobra.Command{
		Use:   "merge SHARD SHARD --stream NAME",
		Short: "Merge two adjacent shards into one",
		Example: "  runnel shards merge shardId-000000000000 shardId-000000000001 " +
			"--local --stream orders --yes",
		Args: usage.ExactArgs(2),
	}, func(ctx context.Context, of *shardsOf, args []string) error {
		shards, err := of.list(ctx)
		if err != nil {
			return err
		}
		low, err := of.find(shards, args[0])
		if err != nil {
			return err
		}
		high, err := of.find(shards, args[1])
		if err != nil {
			return err
		}
		if high.Precedes(low) {
			low, high = high, low
		}
		if !low.Precedes(high) {
			return exit.Usage("shards %s and %s are not adjacent: only neighbours can be merged",
				args[0], args[1])
		}
		return of.applyStep(ctx, shards, yes, plan.Step{
			Kind: plan.StepMerge,
			From: []keyspace.Range{low, high}, To: []keyspace.Range{low.Join(high)},
		})
	})
	command.Flags().BoolVar(&yes, "yes", false, "do it")
	return command
}
