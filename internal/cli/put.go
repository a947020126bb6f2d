package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/producer"
)

type putFlags struct {
	to                         connection
	stream, key, format, order string
	giveUpAfter                time.Duration
}

func (a *app) put() *cobra.Command {
	f := &putFlags{}
	command := &cobra.Command{
		Use:   "put --stream NAME --key FIELD [FILE… | -]",
		Short: "Put the lines of files into a stream, in order per key",
		Long: `Put the lines of files, or of standard input, into a stream: a line is a record,
without its line break; blank lines are skipped; gzip and zstd are recognised by content.
Records of one key stay in their order, under failures, retries and resharding.

It retries through outages without limit, unless --give-up-after is set. A missing, empty or
over-long key, or a line that is not what --format says, ends with status 2 and the line's number
before anything newer is sent.

With --output json it ends with counts. "unknown" counts the attempts without an answer: each may
have left one double in the stream.`,
		Example: "  runnel put --local --stream orders --key /customer/id orders.ndjson.gz",
		RunE: func(c *cobra.Command, args []string) error {
			return a.runPut(c.Context(), f, args)
		},
	}
	f.to.addFlags(command, false)
	flags := command.Flags()
	flags.StringVar(&f.stream, "stream", "", "the stream's name")
	flags.StringVar(&f.key, "key", "", "the partition key: a field's name or a JSON pointer; "+
		"a column with csv; a word's number with lines")
	flags.StringVar(&f.format, "format", "ndjson", "ndjson, csv (with a header) or lines")
	flags.StringVar(&f.order, "order", "key", "key: in order per key, one of a key in flight; "+
		"plain, chained, shard and none are not in this version")
	flags.DurationVar(&f.giveUpAfter, "give-up-after", 0,
		"give a record up after that long; 0 never does")
	return command
}

// putCounts is what `put --output json` prints.
type putCounts struct {
	Records     uint64  `json:"records"`     // acknowledged
	Calls       uint64  `json:"calls"`       // PutRecords calls
	Retried     uint64  `json:"retried"`     // attempts of records beyond their first
	Unknown     uint64  `json:"unknown"`     // (record, call) pairs without an answer
	Undelivered uint64  `json:"undelivered"` // refused or given up
	Seconds     float64 `json:"seconds"`
}

// orders are the words that --order takes.
var orders = []string{"key", "plain", "chained", "shard", "none"}

func (f *putFlags) checkOrder() error {
	switch {
	case !slices.Contains(orders, f.order):
		return usageError("--order %s: want %s", f.order, strings.Join(orders, ", "))
	case f.order != "key":
		return usageError("--order %s: this version knows only key", f.order)
	}
	return nil
}

func (a *app) runPut(ctx context.Context, f *putFlags, files []string) error {
	if f.stream == "" {
		return usageError("--stream is missing: name the stream to put to")
	}
	if err := f.checkOrder(); err != nil {
		return err
	}
	format, err := newInputFormat(f.format, f.key)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	cfg, err := f.to.load(ctx)
	if err != nil {
		return err
	}
	failed := &firstError{}
	p, err := producer.New(ctx, producer.Config{
		Stream: f.stream, Client: awsclient.Kinesis(cfg, awsclient.WithoutRetries()),
		GiveUpAfter: f.giveUpAfter, Logger: a.logger(),
		OnResult: func(_ runnel.Record, result producer.Result) { failed.set(result.Err) },
	})
	if err != nil {
		return usageError("%w", err)
	}
	start := time.Now()
	format.bytes.measure(files)
	stop := a.watchPut(ctx, p, &format.bytes)
	inputErr := putLines(ctx, p, format, files)
	// What was taken is delivered, also when the input ended badly.
	closing, cancel := withGrace(ctx, putGrace)
	defer cancel()
	closeErr := p.Close(closing)
	stop()
	if err := a.printPut(p.Stats(), time.Since(start)); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return &statusError{status: exitInterrupted, err: fmt.Errorf("interrupted: %s records "+
			"are in the stream, and running it again puts them a second time",
			thousands(p.Stats().Delivered))}
	case inputErr != nil:
		return inputErr
	case failed.get() != nil:
		return outsideError(hint(failed.get(), f.stream))
	default:
		return outsideError(closeErr)
	}
}

// putGrace is how long an interrupted put goes on to deliver what it has taken.
const putGrace = 10 * time.Second

// withGrace returns a context that ends that long after ctx does.
func withGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if pause(late, grace) == nil {
			cancel(context.Cause(ctx))
		}
	})
	return late, func() {
		stop()
		cancel(nil)
	}
}

func putLines(
	ctx context.Context, p *producer.Producer, format *inputFormat, files []string,
) error {
	return format.read(files, func(key string, line []byte, where string) error {
		err := p.PutFunc(ctx, runnel.Record{PartitionKey: key, Data: bytes.Clone(line)}, nil)
		if isInvalid(err) {
			return usageError("%s: %w; nothing newer was sent", where, err)
		}
		return err
	})
}

// isInvalid reports whether no stream would take the record.
func isInvalid(err error) bool {
	return errors.Is(err, producer.ErrPartitionKey) || errors.Is(err, producer.ErrHashKey) ||
		errors.Is(err, producer.ErrTooLarge)
}

func (a *app) printPut(s producer.Stats, took time.Duration) error {
	counts := putCounts{
		Records: s.Delivered, Calls: s.Calls, Retried: s.Retried, Unknown: s.Unknown,
		Undelivered: s.Undelivered, Seconds: took.Seconds(),
	}
	if a.output == "json" {
		return json.NewEncoder(a.Out).Encode(counts)
	}
	_, err := fmt.Fprintf(a.Out, "%s records put in %.1f s by %s calls; "+
		"%s attempts without an answer, %s records not delivered\n",
		thousands(counts.Records), counts.Seconds, thousands(counts.Calls),
		thousands(counts.Unknown), thousands(counts.Undelivered))
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
