package consumer

import (
	"cmp"
	"context"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/sink"
)

// batchForm passes pages to a Handler. The handler's return is the commit. The lease row's
// checkpoint is the only record of the progress.
type batchForm struct {
	still
	caller
	committed runnel.Position
	progress  *progress
	gap       *sink.Gap // before the next record
	page      *page     // in work
}

func (f *batchForm) commit(context.Context) (bool, error) {
	return true, f.progress.commit(sink.Committed{End: f.committed})
}

func (f *batchForm) flush(context.Context) error { return nil }

func (f *batchForm) end(context.Context) error {
	f.committed = runnel.End()
	return f.progress.commit(sink.Committed{End: f.committed})
}

func (f *batchForm) close(context.Context, StopReason) error { return nil }

// take calls the handler until it succeeds, or its records are out of attempts.
func (f *batchForm) take(ctx context.Context, p *page) error {
	if f.gap = joined(f.gap, p.gap); f.gap != nil && len(p.records) == 0 {
		f.of.settled(p)
		return nil // the handler has not received the gap, so the checkpoint does not pass it
	}
	f.page = p
	if err := f.process(ctx, p.records, f.policy.Attempts); err != nil {
		return err
	}
	f.committed = p.through
	f.of.settled(p)
	return nil
}

// process calls the handler with records, at most tries times, or for ever if that is 0. Then it
// halves them, until the record that fails is alone: the records of a half are tried once, and a
// single one as often as the policy says.
func (f *batchForm) process(ctx context.Context, records []runnel.Record, tries int) error {
	var named runnel.Position
	for attempt, pauses := 1, 1; len(records) > 0; attempt, pauses = attempt+1, pauses+1 {
		batch := f.batch(records)
		failure, err := f.call(ctx, func(ctx context.Context) error {
			return f.of.run.cfg.Handler(ctx, batch)
		})
		if err != nil {
			return err
		}
		if failure == nil {
			return f.pass(records)
		}
		first, isNamed := blamed(records, failure)
		limit := tries
		if isNamed {
			if err := f.pass(records[:first]); err != nil {
				return err
			}
			records, limit = records[first:], f.policy.Attempts
			if at := records[0].Position; at != named {
				named, attempt, pauses = at, 1, 1
			}
		}
		if blamesNone(failure) {
			attempt--
		} else if limit > 0 && attempt >= limit {
			if len(records) > 1 && !isNamed {
				return f.halve(ctx, records)
			}
			if err := f.giveUp(ctx, records[:1], failure, attempt); err != nil {
				return err
			}
			if err := f.pass(records[:1]); err != nil {
				return err
			}
			records, attempt, pauses, tries = records[1:], 0, 0, f.policy.Attempts
			continue
		}
		f.failed(failure, "%d records after %s", len(records), f.committed)
		if err := f.pause(ctx, pauses); err != nil {
			return err
		}
	}
	return nil
}

func (f *batchForm) halve(ctx context.Context, records []runnel.Record) error {
	half := len(records) / 2
	for _, part := range [][]runnel.Record{records[:half], records[half:]} {
		tries := 1
		if len(part) == 1 {
			tries = f.policy.Attempts
		}
		if err := f.process(ctx, part, tries); err != nil {
			return err
		}
	}
	return nil
}

func (f *batchForm) batch(records []runnel.Record) *Batch {
	return &Batch{
		Stream: f.of.run.stream.Name, ShardID: f.of.first.Key, Records: records,
		Behind: f.page.behind, Gap: f.gap,
	}
}

// pass commits records of the page in work.
func (f *batchForm) pass(records []runnel.Record) error {
	if len(records) == 0 {
		return nil
	}
	f.gap = nil
	f.committed = records[len(records)-1].Position
	if f.committed == f.page.records[len(f.page.records)-1].Position {
		f.committed = f.page.through
	}
	return f.progress.commit(sink.Committed{End: f.committed})
}

// joined joins two gaps into one. The second is the later one, and no record was delivered between
// them.
func joined(first, second *sink.Gap) *sink.Gap {
	if first == nil || second == nil {
		return cmp.Or(first, second)
	}
	return &sink.Gap{After: first.After, Before: second.Before, Reason: second.Reason}
}
