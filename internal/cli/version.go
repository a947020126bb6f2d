package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/usage"
)

// release is the version that `make build` gives the binary, by the linker's -X.
var release string

// build says what a binary was made from.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func versionCommand(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the commit and the Go release it was built with",
		Example: "  runnel version --output json",
		Args:    usage.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if con.JSON() {
				return json.NewEncoder(con.Out).Encode(thisBuild())
			}
			_, err := fmt.Fprintf(con.Out, "runnel %s\n", thisBuild())
			return err
		},
	}
}

func thisBuild() build {
	b := build{
		Version: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				b.Commit = setting.Value
			}
		}
	}
	if release != "" {
		b.Version = release
	}
	return b
}

// String is the version, the commit where it is known, and the Go release.
func (b build) String() string {
	commit := ""
	if b.Commit != "" {
		commit = " " + b.Commit
	}
	return fmt.Sprintf("%s%s %s %s/%s", b.Version, commit, b.Go, b.OS, b.Arch)
}
