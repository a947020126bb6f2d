package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/fanout"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/internal/usage"
)

// deregisterFlags are the flags of leases deregister.
type deregisterFlags struct {
	of     endpoint.Flags
	stream string
	yes    bool
}

func deregisterCommand(con *console.Console) *cobra.Command {
	f := &deregisterFlags{}
	command := &cobra.Command{
		Use:   "deregister NAME --stream NAME",
		Short: "Deregister the consumer by which a fleet read with enhanced fan-out",
		Long: `Deregister the consumer by which a fleet read with enhanced fan-out. AWS charges for
a consumer as long as it is registered, and no worker deregisters it, since others read by it.

NAME is the consumer's name or its ARN. Stop the workers first: one that runs registers the name
again. The leases and their checkpoints stay as they are. The command shows the consumer first,
and removes it with --yes, or with the name typed on a terminal.`,
		Example: "  runnel leases deregister printers --stream orders --local --yes",
		Args:    usage.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), con, args[0])
		},
	}
	f.of.AddFlags(command, false)
	flags := command.Flags()
	usage.StreamVar(flags, &f.stream, "stream", "the stream's name or ARN")
	flags.BoolVar(&f.yes, "yes", false, "do it")
	return command
}

func (f *deregisterFlags) run(ctx context.Context, con *console.Console, name string) error {
	if f.stream == "" {
		return exit.Usage("--stream is missing: name the stream of the consumer")
	}
	if err := fanout.Check(name, streamref.Name(f.stream)); err != nil {
		return exit.Usage("%w", err)
	}
	cfg, err := f.of.Load(ctx)
	if err != nil {
		return err
	}
	client := awsclient.Kinesis(cfg)
	outside := func(err error) error {
		if ctx.Err() != nil {
			return exit.ErrInterrupt
		}
		return exit.Outside(endpoint.Hint(err, f.stream))
	}
	out, err := client.DescribeStreamSummary(ctx, streamref.Describe(f.stream))
	if err != nil {
		return outside(fmt.Errorf("stream %s: %w", f.stream, err))
	}
	stream := aws.ToString(out.StreamDescriptionSummary.StreamARN)
	if err := fanout.CheckStream(name, stream); err != nil {
		return exit.Usage("%w", err)
	}
	known, err := fanout.Describe(ctx, client, stream, name)
	switch {
	case awserr.Kinesis.Of(err) == awserr.Missing:
		return exit.Usage("stream %s has no consumer %s", f.stream, name)
	case err != nil:
		return outside(err)
	}
	con.Say("consumer %s of stream %s, registered %s: workers that read by it lose their "+
		"subscriptions", aws.ToString(known.ConsumerName), f.stream,
		aws.ToTime(known.ConsumerCreationTimestamp).UTC().Format(time.RFC3339))
	if !f.yes {
		if err := con.Confirm(ctx, name, "deregistered"); err != nil {
			return err
		}
	}
	if _, err := client.DeregisterStreamConsumer(ctx, &kinesis.DeregisterStreamConsumerInput{
		ConsumerARN: known.ConsumerARN,
	}); err != nil {
		return outside(fmt.Errorf("deregister consumer %s: %w", name, err))
	}
	con.Say("consumer %s is deregistered", aws.ToString(known.ConsumerName))
	return nil
}
