package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/plan"
)

func splitShardsCommand(con *console.Console) *cobra.Command {
	var yes bool
	var at string
	command := planningCommand(con, &cobra.Command{
		Use:     "split SHARD --stream NAME",
		Short:   "Split one shard into two",
		Example: "  runnel shards split shardId-000000000000 --local --stream orders --yes",
		Args:    usage.ExactArgs(1),
	}, func(ctx context.Context, of *shardsOf, args []string) error {
		shards, err := of.list(ctx)
		if err != nil {
			return err
		}
		parent, err := of.find(shards, args[0])
		if err != nil {
			return err
		}
		bound := parent.Middle()
		if at != "" {
			if bound, err = keyspace.Parse(at); err != nil {
				return exit.Usage("--at: %w", err)
			}
		}
		if bound == parent.Start || !parent.Contains(bound) {
			return exit.Usage("shard %s has the hash keys %s: it cannot be split at %s",
				args[0], parent, bound)
		}
		low, high := parent.SplitAt(bound)
		return of.applyStep(ctx, shards, yes, plan.Step{
			Kind: plan.StepSplit,
			From: []keyspace.Range{parent}, To: []keyspace.Range{low, high},
		})
	})
	command.Flags().BoolVar(&yes, "yes", false, "do it")
	command.Flags().StringVar(&at, "at", "",
		"the hash key that the second half begins with (default: the middle)")
	return command
}

// find returns the range of an open shard.
func (of *shardsOf) find(shards []runnel.Shard, id string) (keyspace.Range, error) {
	for _, s := range shards {
		switch {
		case s.ID != runnel.ShardID(id):
		case !s.Open():
			return keyspace.Range{}, exit.Usage("shard %s of stream %s is closed: see "+
				"runnel shards list --stream %s --open", id, of.stream, of.stream)
		default:
			return s.Range, nil
		}
	}
	return keyspace.Range{}, exit.Usage("stream %s has no shard %s: see "+
		"runnel shards list --stream %s", of.stream, id, of.stream)
}
