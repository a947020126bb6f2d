package cli

import (
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/usage"
)

func streamsCommand(con *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use:   "streams",
		Short: "Create, list, describe and delete streams",
		Example: `  runnel streams create orders --shards 4 --local
  runnel streams list --local`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	command.AddCommand(createStreamCommand(con), listStreamsCommand(con),
		describeStreamCommand(con), deleteStreamCommand(con))
	return command
}
