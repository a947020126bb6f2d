package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"
)

func (a *app) streamsList() *cobra.Command {
	return withKinesis(&cobra.Command{
		Use:     "list",
		Short:   "List the names of the streams",
		Example: "  runnel streams list --local",
		Args:    noArgs,
	}, func(ctx context.Context, client *kinesis.Client, _ []string) error {
		pages := kinesis.NewListStreamsPaginator(client, &kinesis.ListStreamsInput{})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
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
	})
}

func (a *app) printName(name string) error {
	if a.output == "json" {
		return json.NewEncoder(a.Out).Encode(map[string]string{"name": name})
	}
	_, err := fmt.Fprintln(a.Out, name)
	return err
}
