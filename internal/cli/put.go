package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/keys"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/producer"
)

type putFlags struct {
	to                         endpoint.Flags
	stream, key, format, order string
	hashKey, resume            string
	keys                       keys.Flag
	skipRefused                string
	giveUpAfter                time.Duration
}

func putCommand(con *console.Console) *cobra.Command {
	f := &putFlags{}
	command := &cobra.Command{
		Use:   "put --stream NAME --key FIELD [FILE… | -]",
		Short: "Put the lines of files into a stream, in order per key",
		Long: `Put the lines of files, or of standard input, into a stream. A line is a record,
without its line break. Blank lines are skipped; gzip and zstd are recognised by content. Records of
one key stay in their order, under failures, retries and resharding.

It retries through outages without limit, unless --give-up-after is set. A missing, empty or
over-long key, or a line in another format than --format, ends with status 2 and the line's number
before anything newer is sent.

Waiting records of a key are put as one aggregated record, which runnel's consumers and the KCL
open. Other readers (boto3, a Lambda function without a deaggregator) see bytes that begin with
\xf3\x89\x9a\xc2. For them say --order plain, which puts each record as it is; a retry may then
leave a double. A record that leaves no room for more within the stream's limit goes as it is in
every order.

Lines are put in their order, and so at the pace of the slowest shard: once records that a shard
refuses have filled their part of the buffer, the following lines wait. "runnel proxy" takes many
callers at once, and delays only the callers of that shard.

Without --hash-key the MD5 of a key selects its shard. With it a field does, as a number from 0 to
2^128-1; "runnel keys" has evenly spread ones. The records of one key are in order as long as
they have the same hash key.

With --resume STATE the same command continues a load that was interrupted, by kill -9, by a crash
or by a full disk. Nothing is lost, and runnel's consumers drop records that were sent twice. The
input may have grown at its end. Apart from that, the input, the stream, the order and the source of
the keys must be the same.

When the stream refuses the caller (a wrong key, a missing right, no such stream), put stops
reading, reports how many records are open, and ends with 3; with --resume the next run continues
exactly there. A record that the stream refuses for itself, or that is given up, is named with its
line. With --resume the state keeps it: every run ends with 1 until --skip-refused FILE has appended
the input's line to FILE.

With --output json it ends with counts. "unknown" counts the attempts without an answer: each may
have left one double in the stream.`,
		Example: `  echo '{"user":{"id":7}}' | runnel put --local --stream orders --key /user/id
  runnel put --local --stream orders --key id --resume orders.state orders.ndjson`,
		RunE: func(c *cobra.Command, args []string) error {
			return runPut(c.Context(), con, f, args)
		},
	}
	f.to.AddFlags(command, true)
	flags := command.Flags()
	flags.StringVar(&f.stream, "stream", "", "the stream's name")
	flags.StringVar(&f.key, "key", "", "the partition key: a field's name or a JSON pointer; "+
		"a column with csv; a word's number with lines")
	flags.StringVar(&f.hashKey, "hash-key", "", "a field as of --key: the explicit hash key, in "+
		"decimal, that selects the shard in the key's place")
	flags.StringVar(&f.format, "format", "ndjson", "ndjson, csv (with a header) or lines")
	flags.StringVar(&f.order, "order", "key",
		"key: in order per key, as units, so that runnel's consumers drop doubles; shard: the "+
			"same, with units of many keys in a record; none: such records without an order; "+
			"plain: in order per key, each as it is; chained: plain, by PutRecord, one by one")
	flags.StringVar(&f.resume, "resume", "", "keep the state of the load in this file, and "+
		"continue where the last run with it ended, even after a crash")
	flags.StringVar(&f.skipRefused, "skip-refused", "", "with --resume: append the lines of "+
		"records that were refused or given up to this file, and let the load end without them")
	f.keys.AddTo(command)
	flags.DurationVar(&f.giveUpAfter, "give-up-after", 0,
		"give a record up after this time; 0 never does")
	return command
}

// putCounts is the output of put.
type putCounts struct {
	Records     uint64  `json:"records"`     // acknowledged
	Calls       uint64  `json:"calls"`       // PutRecords calls
	Retried     uint64  `json:"retried"`     // attempts of records beyond their first
	Unknown     uint64  `json:"unknown"`     // (record, call) pairs without an answer
	Undelivered uint64  `json:"undelivered"` // refused or given up
	Skipped     uint64  `json:"skipped"`     // in units of an earlier run, with --resume
	Refused     int     `json:"refused"`     // that the state keeps as refused or given up
	Seconds     float64 `json:"seconds"`
}

func runPut(ctx context.Context, con *console.Console, f *putFlags, files []string) (err error) {
	if f.stream == "" {
		return exit.Usage("--stream is missing: name the stream to put to")
	}
	if f.keys.Given() && f.hashKey != "" {
		return exit.Usage("--keys and --hash-key both give hash keys: choose one")
	}
	if f.skipRefused != "" && f.resume == "" {
		return exit.Usage("--skip-refused needs --resume: its state knows the refused records")
	}
	order, err := producer.ParseOrder(f.order)
	if err != nil {
		return exit.Usage("--order: %w", err)
	}
	format, err := input.New(input.Fields{Format: f.format, Key: f.key, HashKey: f.hashKey})
	if err != nil {
		return err
	}
	format.Advice = "; nothing newer was sent"
	if len(files) == 0 {
		files = []string{"-"}
	}
	if err := checkFiles(files); err != nil {
		return err
	}
	cfg, err := f.to.Load(ctx)
	if err != nil {
		return err
	}
	job := &putJob{con: con, flags: f, format: format, files: files}
	if f.resume != "" {
		job.state, err = f.openState(ctx, awsclient.Kinesis(cfg), format, files)
		switch {
		case err != nil && ctx.Err() != nil:
			return exit.ErrInterrupt
		case err != nil:
			return err
		}
		defer func() { err = errors.Join(err, exit.Outside(job.state.Close())) }()
		if job.state.Done() {
			return job.nothingToDo(ctx)
		}
	}
	client := awsclient.Kinesis(cfg, awsclient.WithoutRetries())
	config := producer.Config{
		Stream: f.stream, Client: client, Reader: client, Order: order,
		GiveUpAfter: f.giveUpAfter, Logger: con.Logger(),
	}
	ownKeys, leave, err := f.keys.Join(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	config.Keys = ownKeys
	return job.run(ctx, config)
}

// checkFiles finds a missing file before the lines of those in front of it are put. It opens none:
// a pipe may be among them.
func checkFiles(names []string) error {
	for _, name := range names {
		if name == "-" {
			continue
		}
		if info, err := os.Stat(name); err != nil {
			return exit.Usage("%w; nothing was put", err)
		} else if info.IsDir() {
			return exit.Usage("%s is a folder: name its files; nothing was put", name)
		}
	}
	return nil
}

// putJob is one put.
type putJob struct {
	con    *console.Console
	flags  *putFlags
	format *input.Format
	files  []string
	state  *putState // nil without --resume
}

func (j *putJob) run(ctx context.Context, cfg producer.Config) error {
	failed := &firstError{}
	taking, stopTaking := context.WithCancelCause(ctx)
	defer stopTaking(nil)
	reading, stopReading := context.WithCancelCause(taking)
	defer stopReading(nil)
	cfg.OnResult = func(_ runnel.Record, result producer.Result) {
		failed.set(result.Err)
		if errors.Is(result.Err, producer.ErrRefusedCaller) {
			stopReading(result.Err) // all later records would be refused too
		}
	}
	if j.state != nil {
		j.state.broken = stopTaking
		cfg.Journal, cfg.Resume = j.state, j.state.units()
	}
	p, err := producer.New(ctx, cfg)
	if err != nil {
		return exit.Usage("%w", err)
	}
	start := time.Now()
	j.format.Bytes.Measure(j.files)
	stop := watchPut(ctx, j.con, p, &j.format.Bytes)
	inputErr := j.putLines(reading, p)
	// The accepted records are delivered, also after an error of the input.
	closing, cancel := withGrace(taking, putGrace)
	defer cancel()
	defer j.sayGrace(ctx, p)()
	closeErr := p.Close(closing)
	stop()
	counts := newPutCounts(p.Stats(), time.Since(start))
	if j.state != nil {
		counts.Skipped, counts.Refused = j.state.skipped, len(j.state.Refused())
	}
	if err := rows.Print(j.con.Out, j.con.JSON(), counts); err != nil {
		return err
	}
	broken := context.Cause(taking)
	switch {
	case ctx.Err() != nil:
		return j.interrupted(counts)
	case broken != nil:
		return exit.Outside(broken)
	case reading.Err() != nil || errors.Is(closeErr, producer.ErrHalted):
		return j.halted(closeErr, failed.get(), counts)
	case inputErr != nil:
		return inputErr
	case closeErr == nil && j.state != nil:
		return j.finish(ctx)
	case failed.get() != nil:
		return exit.Outside(endpoint.Hint(failed.get(), j.flags.stream))
	}
	return exit.Outside(closeErr)
}

// halted returns the error of a put after the stream has refused the caller.
func (j *putJob) halted(closeErr, first error, counts putCounts) error {
	if errors.Is(closeErr, producer.ErrHalted) {
		return exit.Outside(fmt.Errorf("%w; the rest of the input was not read: mend that and run "+
			"the same command again, which goes on exactly there",
			endpoint.Hint(closeErr, j.flags.stream)))
	}
	return exit.Outside(fmt.Errorf("%w; the rest of the input was not read, and %s of the records "+
		"before it are not in the stream", endpoint.Hint(first, j.flags.stream),
		console.Thousands(counts.Undelivered)))
}

// sayGrace says, when ctx ends, that put goes on for a while, if it does. The caller calls stop.
func (j *putJob) sayGrace(ctx context.Context, p *producer.Producer) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		if open := p.Stats().Buffered; open > 0 {
			j.con.Say("interrupted: delivering %s records that are taken, for at most %v; a "+
				"second Ctrl-C ends that", console.Thousands(open), putGrace)
		}
	})
}

func (j *putJob) interrupted(counts putCounts) error {
	if counts.Records+counts.Unknown == 0 {
		return exit.Interrupted(
			"interrupted before any record was in the stream; it is safe to run it again")
	}
	again := "running it again puts them a second time"
	if j.state != nil {
		again = "running it again goes on behind them"
	}
	return exit.Interrupted(
		"interrupted: %s records are in the stream, and %s",
		console.Thousands(counts.Records), again)
}

// putGrace is the time that an interrupted put has to deliver the records that it has accepted.
const putGrace = 10 * time.Second

// withGrace returns a context that ends with a delay after ctx.
func withGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if retry.Wait(late, grace) == nil {
			cancel(context.Cause(ctx))
		}
	})
	return late, func() {
		stop()
		cancel(nil)
	}
}

func (j *putJob) putLines(ctx context.Context, p *producer.Producer) error {
	return j.format.Read(ctx, j.files, func(l input.Line) (err error) {
		record := runnel.Record{
			PartitionKey: l.Key, ExplicitHashKey: l.HashKey, Data: bytes.Clone(l.Data),
		}
		if j.state != nil {
			err = j.state.put(ctx, p, record)
		} else {
			err = p.PutFunc(ctx, record, nil)
		}
		if isInvalid(err) {
			return exit.Usage("%s: %w%s", l.Where(), err, j.format.Advice)
		}
		return err
	})
}

// isInvalid reports whether no stream would take the record.
func isInvalid(err error) bool {
	return errors.Is(err, producer.ErrInvalidPartitionKey) || errors.Is(err, producer.ErrInvalidHashKey) ||
		errors.Is(err, producer.ErrTooLarge)
}

func newPutCounts(s producer.Stats, took time.Duration) putCounts {
	return putCounts{
		Records: s.Delivered, Calls: s.Calls, Retried: s.Retried, Unknown: s.Unknown,
		Undelivered: s.Undelivered, Seconds: took.Seconds(),
	}
}

// WriteText implements rows.Report.
func (c putCounts) WriteText(w io.Writer) error {
	before := ""
	if c.Skipped > 0 {
		before = fmt.Sprintf(", %s put before", console.Thousands(c.Skipped))
	}
	if c.Refused > 0 {
		before += fmt.Sprintf(", %s refused for good", console.Thousands(c.Refused))
	}
	_, err := fmt.Fprintf(w, "%s records put in %.1f s by %s calls%s; "+
		"%s attempts without an answer, %s records not delivered\n",
		console.Thousands(c.Records), c.Seconds, console.Thousands(c.Calls), before,
		console.Thousands(c.Unknown), console.Thousands(c.Undelivered))
	return err
}

// firstError keeps the first error that is set. It is safe for concurrent use.
type firstError struct {
	mu  sync.Mutex
	err error
}

func (f *firstError) set(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
