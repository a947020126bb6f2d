package cli

import (
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/consumer"
)

// addFanout adds --fanout, the flag of the commands that are a worker of a fleet.
func addFanout(command *cobra.Command, name *string) {
	command.Flags().StringVar(name, "fanout", "",
		"read by enhanced fan-out as this registered consumer, a name or an ARN; polls while that "+
			"cannot be had, and says so (default: poll)")
}

// fanoutOf returns the configuration for --fanout. A command polls rather than not work at all.
func fanoutOf(name string) *consumer.Fanout {
	if name == "" {
		return nil
	}
	return &consumer.Fanout{Consumer: name, OrPoll: true}
}
