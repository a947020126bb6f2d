package cli

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/reshard"
)

func shardsCommand(con *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use:   "shards",
		Short: "See which shards are hot, and split, merge and scale them by a plan",
		Long: `See which shards of a stream are hot and why, plan splits and merges, and apply the
plan. A command that would change the stream prints the change, and makes it with --yes. An
interrupted change can be continued at any step.`,
		Example: `  runnel shards list --local --stream orders
  runnel shards plan --local --stream orders --sample 30s --output json > orders.plan
  runnel shards apply --local --stream orders --plan orders.plan --yes
  runnel shards scale --local --stream orders --to 8 --yes`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	command.AddCommand(listShardsCommand(con), planShardsCommand(con),
		applyShardsCommand(con), splitShardsCommand(con),
		mergeShardsCommand(con), scaleShardsCommand(con), autoscaleShardsCommand(con))
	return command
}

// shardsOf holds the console, the stream and the API of a shards command.
type shardsOf struct {
	con    *console.Console
	client *kinesis.Client
	stream string
	each   time.Duration // of a step
}

// name returns the stream's name.
func (of *shardsOf) name() string { return streamref.Name(of.stream) }

// shardsRun is the function of a shards command.
type shardsRun func(ctx context.Context, of *shardsOf, args []string) error

// streamCommand adds --stream to a command, and runs it with a client.
func streamCommand(con *console.Console, command *cobra.Command, run shardsRun) *cobra.Command {
	return (&shardsOf{con: con}).command(command, run)
}

// planningCommand is a streamCommand that makes or applies a plan.
func planningCommand(con *console.Console, command *cobra.Command, run shardsRun) *cobra.Command {
	of := &shardsOf{con: con}
	command = of.command(command, run)
	command.Flags().DurationVar(&of.each, "each", 30*time.Second,
		"how long a split or a merge takes, for the prediction; about 30 s on AWS")
	return command
}

func (of *shardsOf) command(command *cobra.Command, run shardsRun) *cobra.Command {
	command = endpoint.WithKinesis(command, func(
		ctx context.Context, client *kinesis.Client, args []string,
	) error {
		switch {
		case of.stream == "":
			return exit.Usage("--stream is missing: name the stream")
		case of.each < 0:
			return exit.Usage("--each %s: want 0 or more", of.each)
		}
		of.client = client
		return run(ctx, of, args)
	})
	usage.StreamVar(command.Flags(), &of.stream, "stream", "the stream's name or ARN")
	return command
}

// list lists the stream's shards.
func (of *shardsOf) list(ctx context.Context) ([]runnel.Shard, error) {
	shards, err := reshard.List(ctx, of.client, of.stream)
	if err != nil {
		return nil, exit.Outside(endpoint.Hint(err, of.stream))
	}
	return shards, nil
}
