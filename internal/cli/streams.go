package cli

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
)

func (a *app) streams() *cobra.Command {
	command := &cobra.Command{
		Use:   "streams",
		Short: "Create, list, describe and delete streams",
		Example: `  runnel streams create orders --shards 4 --local
  runnel streams list --local`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	command.AddCommand(a.streamsCreate(), a.streamsList(), a.streamsDescribe(), a.streamsDelete())
	return command
}

// withKinesis adds the flags of a connection to a command and passes a client to its function.
func withKinesis(
	command *cobra.Command,
	run func(ctx context.Context, client *kinesis.Client, args []string) error,
) *cobra.Command {
	var to connection
	to.addFlags(command, false)
	command.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := to.load(c.Context())
		if err != nil {
			return err
		}
		return run(c.Context(), awsclient.Kinesis(cfg), args)
	}
	return command
}

// waitActive waits until a stream takes requests again after it was created or resharded.
func waitActive(ctx context.Context, client *kinesis.Client, name string) error {
	for {
		out, err := client.DescribeStreamSummary(ctx,
			&kinesis.DescribeStreamSummaryInput{StreamName: &name})
		if err != nil {
			return err
		}
		if out.StreamDescriptionSummary.StreamStatus == types.StreamStatusActive {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
