package cli

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/usage"
)

func listStreamsCommand(con *console.Console) *cobra.Command {
	return endpoint.WithKinesis(&cobra.Command{
		Use:     "list",
		Short:   "List the names of the streams",
		Example: "  runnel streams list --local",
		Args:    usage.NoArgs,
	}, func(ctx context.Context, client *kinesis.Client, _ []string) error {
		out := rows.New(con.Out, con.JSON())
		pages := kinesis.NewListStreamsPaginator(client, &kinesis.ListStreamsInput{})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return exit.Outside(fmt.Errorf("list streams: %w", err))
			}
			for _, name := range page.StreamNames {
				if err := out.Row(streamName{name}); err != nil {
					return err
				}
			}
			if err := out.Flush(); err != nil {
				return err
			}
		}
		return nil
	})
}

// streamName is a stream as streams list prints it.
type streamName struct {
	Name string `json:"name"`
}

// Cells implements rows.Row.
func (s streamName) Cells() []string { return []string{s.Name} }
