package cli

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

func (a *app) shardsMerge() *cobra.Command {
	var yes bool
	command := planningCommand(&cobra.Command{
		Use:   "merge SHARD SHARD --stream NAME",
		Short: "Merge two adjacent shards into one",
		Example: "  runnel shards merge shardId-000000000000 shardId-000000000001 " +
			"--local --stream orders --yes",
		Args: usage.ExactArgs(2),
	}, func(ctx context.Context, client *kinesis.Client, of *shardsOf, args []string) error {
		shards, err := of.list(ctx, client)
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
		return a.reshardOnce(ctx, client, of, shards, yes, plan.Step{
			Kind: plan.StepMerge,
			From: []keyspace.Range{low, high}, To: []keyspace.Range{low.Join(high)},
		})
	})
	command.Flags().BoolVar(&yes, "yes", false, "do it")
	return command
}
