package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/usage"
)

func versionCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the commit and the Go release it was built with",
		Example: "  runnel version",
		Args:    usage.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(con.Out, "runnel %s\n", buildVersion())
			return err
		},
	}
}

// buildVersion is the version, the commit where it is known, and the Go release.
func buildVersion() string {
	version, revision := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = " " + setting.Value
			}
		}
	}
	return fmt.Sprintf("%s%s %s %s/%s",
		version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
