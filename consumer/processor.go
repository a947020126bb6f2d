package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/sink"
)

// Shard is the shard for which a Processor is made.
type Shard struct {
	Stream  string           // the stream's name
	ID      runnel.ShardID   // the shard's id
	Parents []runnel.ShardID // none, one (a split's child) or two (a merge's)
	Range   keyspace.Range   // the hash keys of its records
	// Checkpoint is the position after which its records come; runnel.Start if there is none.
	Checkpoint runnel.Position
}

// Processor processes one shard, and makes its checkpoints itself. Config.NewProcessor makes it
// when the worker begins to read the shard. Its methods are called one at a time.
type Processor interface {
	// Process takes the next batch. If no record comes, it gets a batch without records each
	// second. After an error or a panic it gets the batch again, without the records up to its
	// last checkpoint; see Config.OnError.
	//
	// ctx ends when the worker may no longer process the shard, and Process should then return.
	Process(ctx context.Context, b *Batch, c *Checkpointer) error
	// Stop is the last call. It may make a last checkpoint unless the reason is StopLost or
	// StopSought. At StopEnded every record of the shard has been processed, and nil ends it: the
	// worker writes SHARD_END, and reads its children. After an error Stop is called again, with
	// growing pauses. For the other reasons an error is only logged.
	Stop(ctx context.Context, why StopReason, c *Checkpointer) error
}

// StopReason is why a Processor gets no further batch.
type StopReason string

const (
	// StopPassed means that another worker is to have the shard. It begins behind the last
	// checkpoint.
	StopPassed StopReason = "passed"
	// StopLost means that the worker no longer holds the lease. Another one may process the shard
	// already.
	StopLost StopReason = "lost"
	// StopEnded means that the shard has ended.
	StopEnded StopReason = "ended"
	// StopStopped means that the worker stops, or that Config.OnError stops the shard.
	StopStopped StopReason = "stopped"
	// StopSought means that Worker.Seek goes to another position, for which a new Processor is
	// made.
	StopSought StopReason = "sought"

	killed StopReason = "killed" // as by a signal: no call is made
)

// ErrCheckpointRefused is returned by Checkpoint for a position that the Processor was not handed,
// or that is before its last checkpoint, and after the lease is lost or the shard was sought.
var ErrCheckpointRefused = errors.New("the checkpoint was refused")

// Checkpointer makes the checkpoints of a Processor. It is safe for concurrent use, until Stop has
// returned.
type Checkpointer struct {
	of       *holding
	progress *progress

	mu      sync.Mutex
	last    runnel.Position // the last checkpoint
	handed  runnel.Position // the last record that the Processor got
	through runnel.Position // behind that record, up to which no other one is delivered
	spans   []span          // the records behind last that the Processor got, the newest maxSpans
	cut     runnel.Position // up to which spans were removed for their number
	refused error           // of all further checkpoints
}

// span is the user records that a Processor got of one Kinesis record.
type span struct {
	sequence runnel.SequenceNumber
	lo, hi   int64 // the first and the last Position.Sub
}

// maxSpans limits the memory of a Processor that makes no checkpoint. Those before are checked by
// their order alone.
const maxSpans = 100_000

// Checkpoint notes in the lease row that every record up to at has been processed: at is the
// position of a record that the Processor was handed, behind the last checkpoint. When it returns
// nil, the row has it. The last checkpoint may be made again. An error other than
// ErrCheckpointRefused is the cause of ctx, and the checkpoint may still be made.
func (c *Checkpointer) Checkpoint(ctx context.Context, at runnel.Position) error {
	if err := c.post(at); err != nil {
		return fmt.Errorf("consumer: checkpoint %s of %s: %w: %w", at, c.of.first.Key,
			ErrCheckpointRefused, err)
	}
	err := c.of.keeper.written(ctx, at, c.progress.seeks)
	if errors.Is(err, errVoid) {
		err = fmt.Errorf("%w: %w", ErrCheckpointRefused, err)
	}
	if err != nil {
		return fmt.Errorf("consumer: checkpoint %s of %s: %w", at, c.of.first.Key, err)
	}
	return nil
}

func (c *Checkpointer) post(at runnel.Position) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.refused != nil:
		return c.refused
	case !at.IsRecord():
		return errors.New("it is not the position of a record")
	case c.handed.Less(at):
		return fmt.Errorf("the last record that the processor got is %s", c.handed)
	case at.Less(c.last):
		return fmt.Errorf("the last checkpoint is %s", c.last)
	case at != c.last && !c.wasHanded(at):
		return errors.New("the processor got no record with this position")
	}
	c.last = at
	for len(c.spans) > 0 && c.spans[0].sequence.Compare(at.Sequence) < 0 {
		c.spans = c.spans[1:]
	}
	return c.commit()
}

// wasHanded reports whether the Processor got the record at a position. It may be a position of
// another shard.
func (c *Checkpointer) wasHanded(at runnel.Position) bool {
	i, found := slices.BinarySearchFunc(c.spans, at.Sequence,
		func(s span, at runnel.SequenceNumber) int { return s.sequence.Compare(at) })
	return found && c.spans[i].lo <= at.Sub && at.Sub <= c.spans[i].hi || !c.cut.Less(at)
}

// commit passes the last checkpoint on. Dropped records behind the last record count as processed
// with it.
func (c *Checkpointer) commit() error {
	end := c.last
	if end == c.handed {
		end = c.through
	}
	return c.progress.commit(sink.Committed{End: end})
}

// hand notes the records that the Processor is about to get.
func (c *Checkpointer) hand(p *page) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.through = p.through
	for i := range p.records {
		c.handed = p.records[i].Position
		if n := len(c.spans); n > 0 && c.spans[n-1].sequence == c.handed.Sequence {
			c.spans[n-1].hi = c.handed.Sub
			continue
		}
		c.spans = append(c.spans, span{c.handed.Sequence, c.handed.Sub, c.handed.Sub})
	}
	if over := len(c.spans) - maxSpans; over > 0 {
		s := c.spans[over-1]
		c.cut, c.spans = runnel.Position{Sequence: s.sequence, Sub: s.hi}, c.spans[over:]
	}
	if len(p.records) > 0 {
		return nil
	}
	if c.last != c.handed {
		return nil
	}
	return c.commit()
}

// rest returns the records behind the last checkpoint.
func (c *Checkpointer) rest(records []runnel.Record) []runnel.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(records) > 0 && !c.last.Less(records[0].Position) {
		records = records[1:]
	}
	return records
}

func (c *Checkpointer) refuse(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = why
}

// idleInterval is the time after which a Processor gets a batch without records.
const idleInterval = time.Second

// processorForm passes pages to a Processor.
type processorForm struct {
	still
	caller
	processor    Processor
	checkpointer *Checkpointer
	behind       time.Duration
	gap          *sink.Gap
	ended        bool // Stop has returned nil for the shard's end
}

func newProcessorForm(
	ctx context.Context, c caller, at runnel.Position, p *progress,
) (*processorForm, error) {
	keys, err := c.of.hashRange(ctx)
	if err != nil {
		return nil, err
	}
	f := &processorForm{
		caller:       c,
		checkpointer: &Checkpointer{of: c.of, progress: p, last: at, handed: at, through: at},
	}
	shard := Shard{
		Stream: c.of.run.stream.Name, ID: c.of.first.Key, Parents: c.of.first.Parents,
		Range: keys, Checkpoint: at,
	}
	for n := 1; ; n++ {
		failure, err := f.call(ctx, func(ctx context.Context) error {
			made, err := c.of.run.cfg.NewProcessor(ctx, shard)
			if err == nil && made == nil {
				err = errors.New("it returned nil without an error")
			}
			if err == nil {
				f.processor = made
			}
			return err
		})
		switch {
		case f.processor != nil:
			return f, err // with an error it is stopped at once
		case err != nil:
			return nil, err
		}
		f.tried(fmt.Errorf("NewProcessor failed: %w", failure))
		if err := f.pause(ctx, n); err != nil {
			return nil, err
		}
	}
}

// commit does nothing: the processor's checkpoints are committed when they are made.
func (f *processorForm) commit(context.Context) (bool, error) { return true, nil }

func (f *processorForm) flush(context.Context) error { return nil }

func (f *processorForm) take(ctx context.Context, p *page) error {
	if err := f.checkpointer.hand(p); err != nil {
		return err
	}
	f.behind, f.gap = p.behind, joined(f.gap, p.gap)
	if err := f.process(ctx, p.records); err != nil {
		return err
	}
	f.of.settled(p)
	return nil
}

// process calls the processor until it succeeds, or its records are out of attempts. A batch is not
// halved: the processor may count its batches. So without a name all of it is given up.
func (f *processorForm) process(ctx context.Context, records []runnel.Record) error {
	var named runnel.Position
	for attempt, pauses := 1, 1; len(records) > 0; attempt, pauses = attempt+1, pauses+1 {
		failure, err := f.hand(ctx, records)
		if failure == nil || err != nil {
			return err
		}
		if first, ok := blamed(records, failure); ok {
			records = records[first:]
			if at := records[0].Position; at != named {
				named, attempt, pauses = at, 1, 1
			}
		}
		if records = f.checkpointer.rest(records); len(records) == 0 {
			return nil // all of it was checkpointed before the error
		}
		_, isNamed := blamed(records[:1], failure)
		if blamesNone(failure) {
			attempt--
		} else if f.policy.isOut(attempt) {
			lost := records
			if isNamed {
				lost = records[:1]
			}
			if err := f.giveUp(ctx, lost, failure, attempt); err != nil {
				return err
			}
			records, attempt, pauses = records[len(lost):], 0, 0
			continue
		}
		f.failed(failure, "%d records at %s", len(records), records[0].Position)
		if err := f.pause(ctx, pauses); err != nil {
			return err
		}
	}
	return nil
}

func (f *processorForm) hand(
	ctx context.Context, records []runnel.Record,
) (failure, err error) {
	batch := &Batch{
		Stream: f.of.run.stream.Name, ShardID: f.of.first.Key, Records: records,
		Behind: f.behind, Gap: f.gap,
	}
	failure, err = f.call(ctx, func(ctx context.Context) error {
		return f.processor.Process(ctx, batch, f.checkpointer)
	})
	if failure == nil && err == nil {
		f.gap = nil
	}
	return failure, err
}

// idle passes a batch without records. The next one is the next attempt.
func (f *processorForm) idle(ctx context.Context) error {
	failure, err := f.hand(ctx, nil)
	if failure != nil {
		f.failed(failure, "a batch without records")
	}
	return err
}

// end stops the processor at the shard's end. Only its consent ends the shard.
func (f *processorForm) end(ctx context.Context) error {
	for n := 1; ; n++ {
		failure, err := f.call(ctx, func(ctx context.Context) error {
			return f.processor.Stop(ctx, StopEnded, f.checkpointer)
		})
		if err != nil {
			return err
		}
		if failure == nil {
			f.ended = true
			f.checkpointer.refuse(errors.New("the shard has ended"))
			return f.checkpointer.progress.commit(sink.Committed{End: runnel.End()})
		}
		f.tried(fmt.Errorf("the processor failed to stop at the shard's end: %w", failure))
		if err := f.pause(ctx, n); err != nil {
			return err
		}
	}
}

// close stops the processor, if the shard's end has not done that.
func (f *processorForm) close(ctx context.Context, why StopReason) error {
	if f.ended || why == killed {
		return nil
	}
	switch why {
	case StopLost:
		f.checkpointer.refuse(errors.New("the lease is lost"))
	case StopSought:
		f.checkpointer.refuse(errSought)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.of.run.cfg.HandOverTimeout)
	defer cancel()
	defer f.of.calls.end(f.of.calls.begin())
	failure := guarded(ctx, func(ctx context.Context) error {
		return f.processor.Stop(ctx, why, f.checkpointer)
	})
	f.checkpointer.refuse(errors.New("the processor has been stopped"))
	if failure != nil {
		f.tried(fmt.Errorf("the processor failed to stop (%s): %w", why, failure))
	}
	return nil
}
