package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/shardmap"
)

func (a *app) streams() *cobra.Command {
	command := &cobra.Command{
		Use:   "streams",
		Short: "Create, list, describe and delete streams",
		Example: `  runnel streams create orders --shards 4 --local
  runnel streams list --local`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	command.AddCommand(a.streamsCreate(), a.streamsList(), a.streamsDescribe(), a.streamsDelete())
	return command
}

func (c *connection) kinesis(ctx context.Context) (*kinesis.Client, error) {
	cfg, err := c.load(ctx)
	if err != nil {
		return nil, err
	}
	return awsclient.Kinesis(cfg), nil
}

func (a *app) streamsCreate() *cobra.Command {
	var to connection
	var shards int32
	command := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create a stream and wait until it is ACTIVE",
		Example: "  runnel streams create orders --shards 4 --local",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if shards < 1 {
				return usageError("--shards %d: want at least 1", shards)
			}
			client, err := to.kinesis(c.Context())
			if err != nil {
				return err
			}
			if err := createStream(c.Context(), client, args[0], shards); err != nil {
				return outsideError(fmt.Errorf("create stream %s: %w", args[0], err))
			}
			a.say("stream %s is ACTIVE", args[0])
			return nil
		},
	}
	to.addFlags(command, false)
	command.Flags().Int32Var(&shards, "shards", 1, "how many shards")
	return command
}

func createStream(ctx context.Context, client *kinesis.Client, name string, shards int32) error {
	_, err := client.CreateStream(ctx, &kinesis.CreateStreamInput{
		StreamName: &name, ShardCount: &shards,
	})
	if err != nil {
		return err
	}
	return waitActive(ctx, client, name)
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

func (a *app) streamsList() *cobra.Command {
	var to connection
	command := &cobra.Command{
		Use:     "list",
		Short:   "List the names of the streams",
		Example: "  runnel streams list --local",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := to.kinesis(c.Context())
			if err != nil {
				return err
			}
			pages := kinesis.NewListStreamsPaginator(client, &kinesis.ListStreamsInput{})
			for pages.HasMorePages() {
				page, err := pages.NextPage(c.Context())
				if err != nil {
					return outsideError(fmt.Errorf("list streams: %w", err))
				}
				for _, name := range page.StreamNames {
					if err := a.printName(name); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
	to.addFlags(command, false)
	return command
}

func (a *app) printName(name string) error {
	if a.output == "json" {
		return json.NewEncoder(a.Out).Encode(map[string]string{"name": name})
	}
	_, err := fmt.Fprintln(a.Out, name)
	return err
}

// shardLine is a shard as `streams describe` prints it.
type shardLine struct {
	ShardID         runnel.ShardID   `json:"shardId"`
	Parents         []runnel.ShardID `json:"parents,omitempty"`
	StartingHashKey string           `json:"startingHashKey"`
	EndingHashKey   string           `json:"endingHashKey"`
	Open            bool             `json:"open"`
}

type streamLines struct {
	Name           string      `json:"name"`
	ARN            string      `json:"arn"`
	Status         string      `json:"status"`
	Created        time.Time   `json:"created"`
	RetentionHours int32       `json:"retentionHours"`
	Shards         []shardLine `json:"shards"`
}

func (a *app) streamsDescribe() *cobra.Command {
	var to connection
	command := &cobra.Command{
		Use:     "describe NAME",
		Short:   "Show a stream and its shards",
		Example: "  runnel streams describe orders --local",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := to.kinesis(c.Context())
			if err != nil {
				return err
			}
			stream, err := describeStream(c.Context(), client, args[0])
			if err != nil {
				return outsideError(hint(err, args[0]))
			}
			if a.output == "json" {
				return json.NewEncoder(a.Out).Encode(stream)
			}
			return a.printStream(stream)
		},
	}
	to.addFlags(command, false)
	return command
}

func describeStream(
	ctx context.Context, client *kinesis.Client, name string,
) (*streamLines, error) {
	out, err := client.DescribeStreamSummary(ctx,
		&kinesis.DescribeStreamSummaryInput{StreamName: &name})
	if err != nil {
		return nil, fmt.Errorf("describe stream %s: %w", name, err)
	}
	summary := out.StreamDescriptionSummary
	stream := &streamLines{
		Name: name, ARN: aws.ToString(summary.StreamARN), Status: string(summary.StreamStatus),
		Created:        aws.ToTime(summary.StreamCreationTimestamp).UTC(),
		RetentionHours: aws.ToInt32(summary.RetentionPeriodHours),
	}
	shards, err := shardmap.List(ctx, client, name, nil)
	if err != nil {
		return nil, err
	}
	for _, shard := range shards {
		stream.Shards = append(stream.Shards, shardLine{
			ShardID: shard.ID, Parents: shard.Parents, Open: shard.Open(),
			StartingHashKey: shard.Range.Start.String(), EndingHashKey: shard.Range.End.String(),
		})
	}
	return stream, nil
}

func (a *app) printStream(stream *streamLines) error {
	_, _ = fmt.Fprintf(a.Out, "%s  %s  created %s  retention %d h\n%s\n", stream.Name,
		stream.Status, stream.Created.Format(time.RFC3339), stream.RetentionHours, stream.ARN)
	table := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "SHARD\tSTATE\tPARENTS\tHASH KEYS")
	for _, shard := range stream.Shards {
		state, parents := "closed", "-"
		if shard.Open {
			state = "open"
		}
		for i, parent := range shard.Parents {
			if i == 0 {
				parents = string(parent)
			} else {
				parents += " " + string(parent)
			}
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t[%s, %s]\n",
			shard.ShardID, state, parents, shard.StartingHashKey, shard.EndingHashKey)
	}
	return table.Flush()
}

func (a *app) streamsDelete() *cobra.Command {
	var to connection
	var yes bool
	command := &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a stream and every record in it",
		Example: "  runnel streams delete orders --yes --local",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := to.kinesis(c.Context())
			if err != nil {
				return err
			}
			stream, err := describeStream(c.Context(), client, args[0])
			if err != nil {
				return outsideError(hint(err, args[0]))
			}
			a.say("stream %s, created %s, %d shards: it and its records go for good",
				stream.Name, stream.Created.Format(time.RFC3339), len(stream.Shards))
			if !yes && !a.typedAgain(args[0]) {
				return usageError("nothing was deleted: say --yes, or type the name on a terminal")
			}
			if _, err := client.DeleteStream(c.Context(), &kinesis.DeleteStreamInput{
				StreamName: &args[0], EnforceConsumerDeletion: aws.Bool(true),
			}); err != nil {
				return outsideError(fmt.Errorf("delete stream %s: %w", args[0], err))
			}
			a.say("stream %s is deleted", args[0])
			return nil
		},
	}
	to.addFlags(command, false)
	command.Flags().BoolVar(&yes, "yes", false, "delete without asking")
	return command
}
