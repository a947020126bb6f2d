package console

import (
	"fmt"
	"io"
	"log/slog"
)

// Streams are a command's standard input, output and error.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Console is a command's streams and the flags that every command has.
type Console struct {
	Streams
	Quiet     bool   // --quiet: no progress on Err
	Verbose   bool   // --verbose: details of the work on Err
	LogFormat string // --log-format: text or json; see LogAsJSON
	Output    string // --output: text or json

	// Explain adds a remedy to an error that is logged; nil: none has one.
	Explain func(error) error

	records *whole // of the log, in JSON; nil before LogAsJSON
	printed *lines // Err since then
}

// JSON reports whether results are printed as JSON.
func (c *Console) JSON() bool { return c.Output == "json" }

// Logger returns a logger that writes to standard error: warnings by default, everything with
// --verbose.
func (c *Console) Logger() *slog.Logger {
	if c.Verbose {
		return c.LoggerFrom(slog.LevelDebug)
	}
	return c.LoggerFrom(slog.LevelWarn)
}

// LoggerFrom returns a logger for messages of that level or above.
func (c *Console) LoggerFrom(level slog.Level) *slog.Logger {
	if c.records != nil {
		return c.jsonLogger(level)
	}
	return slog.New(slog.NewTextHandler(c.Err, c.options(level)))
}

func (c *Console) options(level slog.Level) *slog.HandlerOptions {
	return &slog.HandlerOptions{Level: level, ReplaceAttr: c.explain}
}

// explain replaces the errors of a record by explained ones. It has the form of ReplaceAttr.
func (c *Console) explain(_ []string, a slog.Attr) slog.Attr {
	if err, is := a.Value.Any().(error); is && c.Explain != nil {
		a.Value = slog.AnyValue(c.Explain(err))
	}
	return a
}

// Say prints a line of progress on standard error, unless --quiet.
func (c *Console) Say(format string, args ...any) {
	if !c.Quiet {
		_, _ = fmt.Fprintf(c.Err, format+"\n", args...)
	}
}
