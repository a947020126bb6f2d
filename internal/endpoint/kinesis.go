package endpoint

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/streamref"
)

// WithKinesis adds the flags of a connection to a command and passes a client to its function.
func WithKinesis(
	command *cobra.Command,
	run func(ctx context.Context, client *kinesis.Client, args []string) error,
) *cobra.Command {
	var to Flags
	to.AddFlags(command, false)
	command.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := to.Load(c.Context())
		if err != nil {
			return err
		}
		return run(c.Context(), awsclient.Kinesis(cfg), args)
	}
	return command
}

// WaitActive waits until a stream takes requests again after it was created or resharded.
func WaitActive(ctx context.Context, client *kinesis.Client, stream string) error {
	for {
		out, err := client.DescribeStreamSummary(ctx, streamref.Describe(stream))
		if err != nil {
			return err
		}
		if out.StreamDescriptionSummary.StreamStatus == types.StreamStatusActive {
			return nil
		}
		if err := retry.Wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
