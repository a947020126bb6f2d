package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"
)

func (a *app) streamsDelete() *cobra.Command {
	var yes bool
	command := withKinesis(&cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a stream and every record in it",
		Example: "  runnel streams delete orders --yes --local",
		Args:    exactArgs(1),
	}, func(ctx context.Context, client *kinesis.Client, args []string) error {
		stream, err := describeStream(ctx, client, args[0])
		if err != nil {
			return outsideError(hint(err, args[0]))
		}
		a.say("stream %s, created %s, %d shards: it and its records go for good",
			stream.Name, stream.Created.Format(time.RFC3339), len(stream.Shards))
		if !yes {
			if err := a.typedAgain(ctx, args[0], "deleted"); err != nil {
				return err
			}
		}
		if _, err := client.DeleteStream(ctx, &kinesis.DeleteStreamInput{
			StreamName: &args[0], EnforceConsumerDeletion: aws.Bool(true),
		}); err != nil {
			return outsideError(fmt.Errorf("delete stream %s: %w", args[0], err))
		}
		a.say("stream %s is deleted", args[0])
		return nil
	})
	command.Flags().BoolVar(&yes, "yes", false, "delete without asking")
	return command
}
