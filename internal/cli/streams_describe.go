package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/internal/usage"
)

// streamReport is a stream and its shards as they are printed.
type streamReport struct {
	Name           string      `json:"name"`
	ARN            string      `json:"arn"`
	Status         string      `json:"status"`
	Created        time.Time   `json:"created"`
	RetentionHours int32       `json:"retentionHours"`
	Shards         []shardLine `json:"shards"`
}

func describeStreamCommand(con *console.Console) *cobra.Command {
	return endpoint.WithKinesis(&cobra.Command{
		Use:     "describe NAME",
		Short:   "Show a stream and its shards",
		Example: "  runnel streams describe orders --local",
		Args:    usage.ExactArgs(1),
	}, func(ctx context.Context, client *kinesis.Client, args []string) error {
		stream, err := describeStream(ctx, client, args[0])
		if err != nil {
			return describeError(err, args[0])
		}
		return rows.Print(con.Out, con.JSON(), stream)
	})
}

// describeError sets the exit status of an error of describeStream.
func describeError(err error, stream string) error {
	if known := new(exit.Error); errors.As(err, &known) {
		return err
	}
	return exit.Outside(endpoint.Hint(err, stream))
}

// describeStream describes a stream, by its name or ARN.
func describeStream(
	ctx context.Context, client *kinesis.Client, name string,
) (*streamReport, error) {
	if err := streamref.Check(name); err != nil {
		return nil, exit.Usage("%q is %w", name, err)
	}
	out, err := client.DescribeStreamSummary(ctx, streamref.Describe(name))
	if err != nil {
		return nil, fmt.Errorf("describe stream %s: %w", name, err)
	}
	summary := out.StreamDescriptionSummary
	stream := &streamReport{
		Name: streamref.Name(name), ARN: aws.ToString(summary.StreamARN),
		Status:         string(summary.StreamStatus),
		Created:        aws.ToTime(summary.StreamCreationTimestamp).UTC(),
		RetentionHours: aws.ToInt32(summary.RetentionPeriodHours),
	}
	shards, err := shardmap.List(ctx, client, name, nil)
	if err != nil {
		return nil, err
	}
	for _, shard := range shards {
		line := newShardLine(shard.ID, shard.Parents, shard.Range, shard.Open())
		stream.Shards = append(stream.Shards, line)
	}
	return stream, nil
}

// WriteText implements rows.Report.
func (s *streamReport) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s  %s  created %s  retention %d h\n%s\n", s.Name, s.Status,
		s.Created.Format(time.RFC3339), s.RetentionHours, s.ARN)
	if err != nil {
		return err
	}
	table := rows.New(w, false)
	if err := table.Head("SHARD", "STATE", "PARENTS", "HASH KEYS"); err != nil {
		return err
	}
	for _, shard := range s.Shards {
		parents := "-"
		if len(shard.Parents) > 0 {
			parents = strings.Join(shard.Parents, " ")
		}
		line := rows.Line{shard.ShardID, shard.state(), parents, shard.keys.String()}
		if err := table.Row(line); err != nil {
			return err
		}
	}
	return table.Flush()
}
