package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/usage"
)

func (a *app) streamsList() *cobra.Command {
	return endpoint.WithKinesis(&cobra.Command{
		Use:     "list",
		Short:   "List the names of the streams",
		Example: "  runnel streams list --local",
		Args:    usage.NoArgs,
	}, func(ctx context.Context, client *kinesis.Client, _ []string) error {
		pages := kinesis.NewListStreamsPaginator(client, &kinesis.ListStreamsInput{})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return exit.Outside(fmt.Errorf("list streams: %w", err))
			}
			for _, name := range page.StreamNames {
				if err := a.printName(name); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (a *app) printName(name string) error {
	if a.JSON() {
		return json.NewEncoder(a.Out).Encode(map[string]string{"name": name})
	}
	_, err := fmt.Fprintln(a.Out, name)
	return err
}
