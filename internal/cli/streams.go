package cli

import (
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/usage"
)

func (a *app) streams() *cobra.Command {
	command := &cobra.Command{
		Use:   "streams",
		Short: "Create, list, describe and delete streams",
		Example: `  runnel streams create orders --shards 4 --local
  runnel streams list --local`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	command.AddCommand(a.streamsCreate(), a.streamsList(), a.streamsDescribe(), a.streamsDelete())
	return command
}
