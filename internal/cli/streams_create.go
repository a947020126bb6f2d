package cli

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/usage"
)

func createStreamCommand(con *console.Console) *cobra.Command {
	var shards int32
	command := endpoint.WithKinesis(&cobra.Command{
		Use:     "create NAME",
		Short:   "Create a stream and wait until it is ACTIVE",
		Example: "  runnel streams create orders --shards 4 --local",
		Args:    usage.ExactArgs(1),
	}, func(ctx context.Context, client *kinesis.Client, args []string) error {
		if shards < 1 {
			return exit.Usage("--shards %d: want at least 1", shards)
		}
		_, err := client.CreateStream(ctx, &kinesis.CreateStreamInput{
			StreamName: &args[0], ShardCount: &shards,
		})
		if err == nil {
			err = endpoint.WaitActive(ctx, client, args[0])
		}
		if err != nil {
			return exit.Outside(fmt.Errorf("create stream %s: %w", args[0], err))
		}
		con.Say("stream %s is ACTIVE", args[0])
		return nil
	})
	command.Flags().Int32Var(&shards, "shards", 1, "how many shards")
	return command
}
