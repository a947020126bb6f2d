package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/internal/usage"
)

func deleteStreamCommand(con *console.Console) *cobra.Command {
	var yes bool
	command := endpoint.WithKinesis(&cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a stream and every record in it",
		Example: "  runnel streams delete orders --yes --local",
		Args:    usage.ExactArgs(1),
	}, func(ctx context.Context, client *kinesis.Client, args []string) error {
		stream, err := describeStream(ctx, client, args[0])
		if err != nil {
			return describeError(err, args[0])
		}
		con.Say("stream %s, created %s, %d shards: it and its records go for good",
			stream.Name, stream.Created.Format(time.RFC3339), len(stream.Shards))
		if !yes {
			if err := con.Confirm(ctx, stream.Name, "deleted"); err != nil {
				return err
			}
		}
		in := &kinesis.DeleteStreamInput{EnforceConsumerDeletion: aws.Bool(true)}
		in.StreamName, in.StreamARN = streamref.Target(args[0])
		if _, err := client.DeleteStream(ctx, in); err != nil {
			return exit.Outside(fmt.Errorf("delete stream %s: %w", args[0], err))
		}
		con.Say("stream %s is deleted", stream.Name)
		return nil
	})
	command.Flags().BoolVar(&yes, "yes", false, "delete without asking")
	return command
}
