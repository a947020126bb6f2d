package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/usage"
)

func (a *app) shardsList() *cobra.Command {
	var open bool
	command := shardsCommand(&cobra.Command{
		Use:   "list --stream NAME",
		Short: "List the shards of a stream, with their parents and their part of the key space",
		Long: `List the shards of a stream that are kept, open and closed, with their parents and
how much of the key space they have. With --output json a line is a shard.`,
		Example: "  runnel shards list --local --stream orders",
		Args:    usage.NoArgs,
	}, func(ctx context.Context, client *kinesis.Client, of *shardsOf, _ []string) error {
		shards, err := of.list(ctx, client)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
		if !a.JSON() {
			_, _ = fmt.Fprintln(table, "SHARD\tSTATE\tPARENTS\tPART\tHASH KEYS")
		}
		for _, shard := range shards {
			if open && !shard.Open {
				continue
			}
			line := shardLine{
				ShardID: string(shard.ID), Open: shard.Open,
				StartingHashKey: shard.Range.Start.String(),
				EndingHashKey:   shard.Range.End.String(),
			}
			parents, state := "-", "closed"
			for _, parent := range shard.Parents {
				line.Parents = append(line.Parents, string(parent))
			}
			if a.JSON() {
				if err := json.NewEncoder(a.Out).Encode(line); err != nil {
					return err
				}
				continue
			}
			if len(line.Parents) > 0 {
				parents = fmt.Sprint(line.Parents)
			}
			if shard.Open {
				state = "open"
			}
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%.2f%%\t%s\n",
				shard.ID, state, parents, 100*shard.Range.Part(), shard.Range)
		}
		return table.Flush()
	})
	command.Flags().BoolVar(&open, "open", false, "only the shards that take records")
	return command
}
