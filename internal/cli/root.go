package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/keys"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/internal/usage"
)

// Streams are a command's standard input, output and error.
type Streams = console.Streams

// Main runs the command line and returns its exit status. The first SIGINT or SIGTERM
// cancels the command, which then finishes its work and hands its leases over; the second ends the
// process at once.
func Main(ctx context.Context, args []string, streams Streams) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-signals:
			cancel(exit.ErrStop)
		case <-done:
			return
		}
		select {
		case <-signals:
			os.Exit(exit.StatusInterrupted)
		case <-done:
		}
	}()

	con := &console.Console{Streams: streams, Explain: endpoint.StartHint}
	con.Out = exit.Output{Writer: streams.Out}
	if wantsJSON(args) { // before the flags are parsed, which may fail
		con.LogAsJSON()
	}
	defer con.Flush()
	root := rootCommand(con)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	var known *exit.Error
	if err != nil && (!errors.As(err, &known) || !known.Quiet) {
		lines := strings.Split(endpoint.StartHint(err).Error(), "\n")
		for i, line := range lines {
			lines[i] = rows.Plain(line)
		}
		help := ""
		if exit.Status(err) == exit.StatusUsage && known == nil {
			help = command.CommandPath() + " --help"
		}
		con.Fail(strings.Join(lines, "\n"), help, exit.Status(err))
	}
	return exit.Status(err)
}

// wantsJSON reports whether a command line has --log-format json.
func wantsJSON(args []string) (json bool) {
	for i, arg := range args {
		value, given := strings.CutPrefix(arg, "--log-format")
		switch {
		case arg == "--":
			return json
		case !given:
		case value == "" && i+1 < len(args):
			json = args[i+1] == "json"
		case value != "":
			json = value == "=json"
		}
	}
	return json
}

// rootCommand returns runnel with all subcommands, which share the console.
func rootCommand(con *console.Console) *cobra.Command {
	root := &cobra.Command{
		Use:   "runnel",
		Short: "An ordered, exactly-once event pipeline on the Kinesis API.",
		Long: `An ordered, exactly-once event pipeline on the Kinesis API.

Try it, with nothing installed:
  runnel demo

Or step by step, with a server in the background and a file of two events:
  runnel serve --stream orders:4 &
  printf '{"id":1}\n{"id":2}\n' > orders.ndjson
  runnel put     --local --stream orders --key id orders.ndjson
  runnel archive --local --stream orders --to archive --once
  runnel verify  archive --source orders.ndjson --id id --key id`,
		Version:       thisBuild().String(),
		Args:          usage.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(con.In)
	root.SetOut(con.Out)
	root.SetErr(con.Err)
	flags := root.PersistentFlags()
	flags.BoolVar(&con.Quiet, "quiet", false, "no progress on standard error")
	flags.BoolVar(&con.Verbose, "verbose", false, "log every step on standard error")
	flags.StringVar(&con.LogFormat, "log-format", "text",
		"text or json: how to log; json also for all other lines on standard error")
	flags.StringVar(&con.Output, "output", "text", "results as text or json")
	root.SetVersionTemplate("runnel {{.Version}}\n")
	root.Flags().Bool("version", false, "as runnel version")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		// The flags of a misspelt subcommand are unknown to the command above it.
		if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
			return usage.UnknownCommand(c, words[0])
		}
		return fmt.Errorf("%w%s", err, usage.DidYouMean(c, err))
	})
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if con.LogFormat != "text" && con.LogFormat != "json" {
			return exit.Usage("--log-format %s: want text or json", con.LogFormat)
		}
		if con.Output != "text" && !con.JSON() {
			return exit.Usage("--output %s: want text or json", con.Output)
		}
		return nil
	}
	root.AddCommand(demoCommand(con), serveCommand(con), healthCommand(con), proxyCommand(con),
		streamsCommand(con), leasesCommand(con), shardsCommand(con), putCommand(con),
		relayCommand(con),
		rollupCommand(con),
		tailCommand(con),
		archiveCommand(con), verifyCommand(con), restoreCommand(con), tablesCommand(con),
		doctorCommand(con),
		fsckCommand(con), backupCommand(con), keys.Command(con),
		versionCommand(con))
	usage.HelpCommand(root)
	return root
}
