// Package cli is the runnel command: one file per subcommand.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/runnel-stream/runnel/internal/spell"
)

// Streams are a command's standard input, output and error.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// app holds the streams and the flags that all commands share.
type app struct {
	Streams
	quiet     bool
	verbose   bool
	logFormat string
	output    string
}

// Main runs the command line and returns its exit status. The first SIGINT or SIGTERM
// cancels the command, which then finishes and hands over what it holds; the second ends the
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
			cancel(errStop)
		case <-done:
			return
		}
		select {
		case <-signals:
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()

	a := &app{Streams: streams}
	a.Out = output{streams.Out}
	root := a.root()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	var known *statusError
	if err != nil && (!errors.As(err, &known) || !known.quiet) {
		_, _ = fmt.Fprintf(streams.Err, "runnel: %v\n", startHint(err))
		if statusOf(err) == exitUsage && known == nil {
			_, _ = fmt.Fprintf(streams.Err, "Try: %s --help\n", command.CommandPath())
		}
	}
	return statusOf(err)
}

func (a *app) root() *cobra.Command {
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
		Version:       buildVersion(),
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	flags := root.PersistentFlags()
	flags.BoolVar(&a.quiet, "quiet", false, "no progress on standard error")
	flags.BoolVar(&a.verbose, "verbose", false, "log what happens, in detail, on standard error")
	flags.StringVar(&a.logFormat, "log-format", "text", "how to log: text or json")
	flags.StringVar(&a.output, "output", "text", "results as text or json")
	root.SetVersionTemplate("runnel {{.Version}}\n")
	root.Flags().Bool("version", false, "as runnel version")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		// The flags of a misspelt subcommand are unknown to the command above it.
		if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
			return unknownCommand(c, words[0])
		}
		return fmt.Errorf("%w%s", err, didYouMean(c, err))
	})
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.logFormat != "text" && a.logFormat != "json" {
			return usageError("--log-format %s: want text or json", a.logFormat)
		}
		if a.output != "text" && a.output != "json" {
			return usageError("--output %s: want text or json", a.output)
		}
		return nil
	}
	root.AddCommand(a.demo(), a.serve(), a.proxy(), a.streams(), a.shards(), a.put(), a.tail(),
		a.archive(), a.verify(), a.fsck(), a.keys(), a.version())
	helpCommand(root)
	return root
}

// didYouMean suggests the flag that is nearest to an unknown one.
func didYouMean(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near := spell.Near(unknown.GetSpecifiedName(), names); near != "" {
		return "; did you mean --" + near + "?"
	}
	return ""
}

// logger logs to standard error: warnings by default, everything with --verbose.
func (a *app) logger() *slog.Logger {
	if a.verbose {
		return a.loggerFrom(slog.LevelDebug)
	}
	return a.loggerFrom(slog.LevelWarn)
}

// loggerFrom returns a logger for messages of that level or above.
func (a *app) loggerFrom(level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if a.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.Err, options))
	}
	return slog.New(slog.NewTextHandler(a.Err, options))
}

// say prints a line of progress on standard error, unless --quiet.
func (a *app) say(format string, args ...any) {
	if !a.quiet {
		_, _ = fmt.Fprintf(a.Err, format+"\n", args...)
	}
}
