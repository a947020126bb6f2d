package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/console"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/rows"
	"github.com/runnel-stream/runnel/producer"
)

// putJob is one put.
type putJob struct {
	con    *console.Console
	stream string
	resume string // the state's file; "" for none
	skip   string // the file for refused records; "" for none
	from   putSource
	state  *putState // nil without a state
	passed int       // records that no stream takes, without a state
}

// putSource has the records of a put.
type putSource interface {
	// read calls take with each record, in the same order at each call.
	read(ctx context.Context, take func(input.Line) error) error
	// bar shows the part of the source that was read.
	bar(took time.Duration) string
	// advice is the end of the message of a record that no stream takes.
	advice() string
	// fixed reports whether the user cannot mend a record: the put goes on without it.
	fixed() bool
}

// fileSource has the lines of files as records.
type fileSource struct {
	format *input.Format
	files  []string
}

func (s fileSource) read(ctx context.Context, take func(input.Line) error) error {
	s.format.Bytes.Measure(s.files)
	return s.format.Read(ctx, s.files, take)
}

func (s fileSource) bar(took time.Duration) string { return s.format.Bytes.Bar(took) }
func (s fileSource) advice() string                { return s.format.Advice }
func (fileSource) fixed() bool                     { return false }

// dataOf yields the data of a source's records. The last pair has the error, if there is one.
func dataOf(ctx context.Context, from putSource) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := from.read(ctx, func(l input.Line) error {
			if !yield(bytes.Clone(l.Data), nil) {
				return exit.ErrStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, exit.ErrStop) {
			yield(nil, err)
		}
	}
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
	stop := watchPut(ctx, j.con, p, j.from)
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
	} else {
		counts.Refused = j.passed
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
		return exit.Outside(endpoint.Hint(failed.get(), j.stream))
	case closeErr == nil:
		return j.endPassed()
	}
	return exit.Outside(closeErr)
}

// halted returns the error of a put after the stream has refused the caller.
func (j *putJob) halted(closeErr, first error, counts putCounts) error {
	if errors.Is(closeErr, producer.ErrHalted) {
		return exit.Outside(fmt.Errorf("%w; the rest of the input was not read: mend that and run "+
			"the same command again, which goes on exactly there",
			endpoint.Hint(closeErr, j.stream)))
	}
	return exit.Outside(fmt.Errorf("%w; the rest of the input was not read, and %s of the records "+
		"before it are not in the stream", endpoint.Hint(first, j.stream),
		console.Thousands(counts.Undelivered)))
}

// sayGrace prints a line when ctx ends and accepted records are still being delivered. The caller
// calls stop.
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
	return j.from.read(ctx, func(l input.Line) (err error) {
		record := runnel.Record{
			PartitionKey: l.Key, ExplicitHashKey: l.HashKey, Data: bytes.Clone(l.Data),
		}
		if j.state != nil {
			err = j.state.put(ctx, p, record)
		} else {
			err = p.PutFunc(ctx, record, nil)
		}
		if isInvalid(err) && j.from.fixed() {
			j.pass(l, err)
			return nil
		}
		if isInvalid(err) {
			return exit.Usage("%s: %w%s", l.Where(), err, j.from.advice())
		}
		return err
	})
}

// isInvalid reports whether every stream would refuse the record.
func isInvalid(err error) bool {
	return errors.Is(err, producer.ErrInvalidPartitionKey) ||
		errors.Is(err, producer.ErrInvalidHashKey) || errors.Is(err, producer.ErrTooLarge) ||
		errors.Is(err, producer.ErrNestedAggregate)
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
