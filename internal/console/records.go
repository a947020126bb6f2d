package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"sync"
)

// LogAsJSON makes everything on standard error JSON: a record for each line that is printed on Err,
// beside the records of the loggers. It replaces Err, so call it before Err is passed on and before
// anything else uses the console, and once. The caller calls Flush at the end.
//
// If Err is the process's own standard error, the records of Go's log package and of slog's default
// logger are JSON there from now on, too: the standard library and dependencies use them.
func (c *Console) LogAsJSON() {
	err := c.Err
	c.records = &whole{out: err}
	logger := c.jsonLogger(slog.LevelInfo)
	c.printed = &lines{record: logger.Info, out: c.records}
	c.Err = c.printed
	if err == io.Writer(os.Stderr) {
		slog.SetDefault(logger)
		log.SetFlags(0) // after SetDefault, which also takes the log package's output
		log.SetOutput(&lines{record: logger.Warn, out: c.records})
	}
}

// Flush writes the rest of a line without an end.
func (c *Console) Flush() {
	if c.printed != nil {
		c.printed.flush()
	}
}

// Fail prints the error that ends a command, and a command that helps, unless that is "". In JSON
// both are one record, with the exit status.
func (c *Console) Fail(text, help string, status int) {
	if c.records == nil {
		_, _ = fmt.Fprintf(c.Err, "runnel: %s\n", text)
		if help != "" {
			_, _ = fmt.Fprintf(c.Err, "Try: %s\n", help)
		}
		return
	}
	c.Flush()
	attributes := []any{"status", status}
	if help != "" {
		attributes = append(attributes, "try", help)
	}
	c.jsonLogger(slog.LevelError).Error(text, attributes...)
}

func (c *Console) jsonLogger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(c.records, c.options(level)))
}

// whole writes records one by one, of several loggers.
type whole struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *whole) Write(record []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(record)
}

// lines makes each line that is written a record. A line that is a record already, as a child's,
// stays as it is. Empty lines are dropped.
type lines struct {
	record func(text string, attributes ...any) // writes a record
	out    io.Writer                            // for lines that are records

	mu      sync.Mutex
	partial []byte // of a line without an end
}

// maxLine bounds a record's line, in bytes. A longer line becomes several records.
const maxLine = 64 << 10

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(text)
	for {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		l.partial = append(l.partial, line...)
		if ended || len(l.partial) >= maxLine {
			l.end()
		}
		if !ended {
			return n, nil
		}
		text = rest
	}
}

func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// end writes the line. The caller holds mu.
func (l *lines) end() {
	line := bytes.TrimRight(l.partial, " \r")
	l.partial = l.partial[:0]
	switch {
	case len(line) == 0:
	case line[0] == '{' && json.Valid(line):
		_, _ = l.out.Write(append(bytes.Clone(line), '\n'))
	default:
		l.record(string(line))
	}
}
