package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"iter"
	"os/signal"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/follow"
	"github.com/runnel-stream/runnel/internal/opener"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/usage"
	"github.com/runnel-stream/runnel/sink/archive"
)

type tailFlags struct {
	of                  endpoint.Flags
	stream, from, shard string
	once, doubles       bool
	reading             readFlags
	fleet               tailFleetFlags
}

func tailCommand(con *console.Console) *cobra.Command {
	f := &tailFlags{}
	command := &cobra.Command{
		Use:   "tail --stream NAME",
		Short: "Print the records of a stream as they come",
		Long: `Print the records of a stream as they arrive, of all its shards, parents before
children over splits and merges. It takes no lease and keeps no checkpoint. Consumers notice only
its reads: up to five a second of each shard, which AWS counts together with theirs.

A line is a record's data; --verbose puts its shard, position and key in front. Data that is not one
line of text is printed in base64. With --output json a line is an object as in an archive, so that
both can be compared. Aggregated records are opened. Doubles that a producer's retries left are
dropped if their first copy was read.

With --app it is one worker of a fleet: the workers of an application share the shards through a
lease table, with Java KCL workers too. A line is printed before its checkpoint. When a worker
stops, the others go on where it was; when it dies, they print its last lines again.`,
		Example: `  runnel tail --local --stream orders
  runnel tail --local --stream orders --from oldest --once --output json
  runnel tail --local --stream orders --from 2026-01-31T08:00:00Z
  runnel tail --local --stream orders --from oldest --app printers --worker p1`,
		Args: usage.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runTail(con, c, f) },
	}
	f.of.AddFlags(command, true)
	flags := command.Flags()
	usage.StreamVar(flags, &f.stream, "stream", "the stream's name or ARN")
	flags.StringVar(&f.from, "from", "latest", "oldest, latest, an RFC 3339 time, or a sequence "+
		"number of --shard; with --once the default is oldest")
	flags.StringVar(&f.shard, "shard", "", "only this shard, to its end (default: all)")
	flags.BoolVar(&f.once, "once", false,
		"end when everything that was in the stream at the start is printed")
	flags.BoolVar(&f.doubles, "doubles", false, "print doubles too")
	f.reading.addFlags(flags)
	f.fleet.addFlags(command)
	return command
}

func (f *tailFlags) config(c *cobra.Command) (follow.Config, error) {
	cfg := follow.Config{
		Stream: f.stream, Shard: runnel.ShardID(f.shard), Once: f.once, Doubles: f.doubles,
		ReadRate: f.reading.rate, Void: opener.Void(f.reading.void),
	}
	if f.stream == "" {
		return cfg, exit.Usage("--stream is missing: name the stream to read")
	}
	if err := f.check(c); err != nil {
		return cfg, err
	}
	if f.once && !c.Flags().Changed("from") {
		f.from = "oldest"
	}
	if n := runnel.SequenceNumber(f.from); n.IsNumber() {
		if f.fleet.app != "" {
			return cfg, exit.Usage("--from %s: a fleet begins with the oldest record, the latest "+
				"or a time", f.from)
		}
		if f.shard == "" {
			return cfg, exit.Usage("--from %s: a sequence number is of one shard: name it with "+
				"--shard", f.from)
		}
		cfg.From = runnel.FromSequence(n)
		return cfg, nil
	}
	var err error
	if cfg.From, err = runnel.ParseFrom(f.from); err != nil {
		return cfg, exit.Usage("--from: %w; with --shard also a sequence number", err)
	}
	return cfg, nil
}

func runTail(con *console.Console, c *cobra.Command, f *tailFlags) error {
	cfg, err := f.config(c)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // the failed write ends the command without a message
	if f.fleet.app != "" {
		return runTailFleet(con, c, f, cfg.From)
	}
	ctx := c.Context()
	to, err := f.of.Load(ctx)
	if err != nil {
		return err
	}
	cfg.Kinesis = awsclient.Kinesis(to)
	printer := &recordPrinter{
		out: bufio.NewWriterSize(con.Out, 1<<16), json: con.JSON(), verbose: con.Verbose,
	}
	cfg.Handle = printer.print
	cfg.OnNotice = func(n follow.Notice) { tailNotice(con, n) }
	err = follow.Run(ctx, cfg)
	switch {
	case err == nil, ctx.Err() != nil && !f.once, errors.Is(err, syscall.EPIPE):
		return nil // the reader of the output has closed it, or the user has interrupted
	case ctx.Err() != nil:
		return exit.ErrInterrupt
	case errors.Is(err, follow.ErrVoid):
		return stoppedAtVoid(err)
	case errors.Is(err, follow.ErrShard), awserr.InvalidArgument(err):
		return exit.Usage("%w", err)
	default:
		return exit.Outside(endpoint.Hint(err, f.stream))
	}
}

// tailNotice prints a notice on standard error, for events that the records do not show.
func tailNotice(con *console.Console, n follow.Notice) {
	switch n.Kind {
	case follow.Began, follow.Ended:
		if con.Verbose {
			con.Say("%s", n)
		}
	default:
		con.Say("%s", n)
	}
}

// recordPrinter writes records as lines.
type recordPrinter struct {
	out           *bufio.Writer
	json, verbose bool
	mu            sync.Mutex
	line          []byte
}

// print is page, but does not wait for a reader of the output that has stopped reading once ctx
// ends: the command is about to end, too.
func (p *recordPrinter) print(ctx context.Context, records iter.Seq[*runnel.Record]) error {
	var err error
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		p.mu.Lock() // several shards print
		defer p.mu.Unlock()
		err = p.page(ctx, records)
	}()
	select {
	case <-printed:
		return err
	case <-ctx.Done():
	}
	if retry.WaitOr(context.WithoutCancel(ctx), time.Second, printed) {
		return context.Cause(ctx)
	}
	return err
}

// page writes the records of one read of a shard and flushes them.
func (p *recordPrinter) page(ctx context.Context, records iter.Seq[*runnel.Record]) error {
	for record := range records {
		p.line = p.appendLine(p.line[:0], record)
		if _, err := p.out.Write(p.line); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), p.out.Flush())
		}
	}
	return p.out.Flush()
}

func (p *recordPrinter) appendLine(line []byte, record *runnel.Record) []byte {
	if p.json {
		return append(archive.AppendRecord(line, record), '\n')
	}
	if p.verbose {
		line = append(line, record.ShardID...)
		line = append(append(append(line, ' '), record.Position.String()...), ' ')
		line = appendText(line, []byte(record.PartitionKey))
		line = append(line, '\t')
	}
	return append(appendText(line, record.Data), '\n')
}

// appendText appends the data as it is if it is one line of text, and otherwise in base64, since
// control characters could change the state of a terminal.
func appendText(line, data []byte) []byte {
	odd := func(r rune) bool { return r != '\t' && unicode.IsControl(r) }
	if !utf8.Valid(data) || bytes.ContainsFunc(data, odd) {
		return base64.StdEncoding.AppendEncode(line, data)
	}
	return append(line, data...)
}
