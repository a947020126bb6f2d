package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/usage"
)

// shardLine is a shard as `streams describe` prints it.
type shardLine struct {
	ShardID         string   `json:"shardId"`
	Parents         []string `json:"parents,omitempty"`
	StartingHashKey string   `json:"startingHashKey"`
	EndingHashKey   string   `json:"endingHashKey"`
	Open            bool     `json:"open"`
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
	return endpoint.WithKinesis(&cobra.Command{
		Use:     "describe NAME",
		Short:   "Show a stream and its shards",
		Example: "  runnel streams describe orders --local",
		Args:    usage.ExactArgs(1),
	}, func(ctx context.Context, client *kinesis.Client, args []string) error {
		stream, err := describeStream(ctx, client, args[0])
		if err != nil {
			return exit.Outside(endpoint.Hint(err, args[0]))
		}
		if a.JSON() {
			return json.NewEncoder(a.Out).Encode(stream)
		}
		return a.printStream(stream)
	})
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
		line := shardLine{
			ShardID: string(shard.ID), Open: shard.Open(),
			StartingHashKey: shard.Range.Start.String(), EndingHashKey: shard.Range.End.String(),
		}
		for _, parent := range shard.Parents {
			line.Parents = append(line.Parents, string(parent))
		}
		stream.Shards = append(stream.Shards, line)
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
		if len(shard.Parents) > 0 {
			parents = strings.Join(shard.Parents, " ")
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t[%s, %s]\n",
			shard.ShardID, state, parents, shard.StartingHashKey, shard.EndingHashKey)
	}
	return table.Flush()
}
