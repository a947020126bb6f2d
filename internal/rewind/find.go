// Package rewind sets the leases of an application to the records from a time on, over splits and
// merges. Find finds the place of each shard, Plan compares these with the leases, and Apply writes
// them.
//
// The rows get positions of records, or TRIM_HORIZON where no record comes before. They never get
// LATEST or a time: Java workers resolve both anew when they take a row.
package rewind

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/awscbor"
	"github.com/runnel-stream/runnel/internal/pages"
	"github.com/runnel-stream/runnel/internal/retry"
)

// Goal is the place in a shard at which the records from a time on begin.
type Goal struct {
	Shard runnel.Shard
	// At is the last user record before the time. It is Start if no record comes before, and End if
	// the shard has ended and no record comes at or after the time.
	At runnel.Position
	// Arrival is the arrival of the record at At; zero if there is none.
	Arrival time.Time
}

// Stream is the stream to read.
type Stream struct {
	Kinesis pages.KinesisAPI
	Name    string // or its ARN
	// Now is a time by the stream's clock that has passed: the API refuses a reading from a later
	// time, and this machine's clock may be ahead.
	Now time.Time
}

// parallel is the number of shards that are read at a time.
const parallel = 16

// Find returns the goals of the shards, in their order. to is oldest, latest, or a time up to
// of.Now. Latest means behind the newest record that can be read now. A record belongs to the time
// of its arrival; if arrivals of a shard step back, its records from the first one on count that
// has arrived at the time or later.
//
// It reads little: some twenty records of each shard, and those of about a second.
func Find(
	ctx context.Context, of Stream, to runnel.From, shards []runnel.Shard,
) ([]Goal, error) {
	reads := awscbor.New(of.Kinesis)
	goals := make([]Goal, len(shards))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, s := range shards {
		group.Go(func() (err error) {
			f := finder{of: of, reads: reads, shard: s, to: to}
			goals[i], err = f.find(ctx)
			return err
		})
	}
	return goals, group.Wait()
}

type finder struct {
	of    Stream
	reads *awscbor.Client // by of.Kinesis
	shard runnel.Shard
	to    runnel.From
}

func (f *finder) find(ctx context.Context) (Goal, error) {
	goal := Goal{Shard: f.shard}
	ended := Goal{Shard: f.shard, At: runnel.End()}
	latest := f.to.Word() == runnel.Latest
	switch {
	case f.to.Word() == runnel.TrimHorizon:
		return goal, nil
	case latest && !f.shard.Open():
		return ended, nil
	}
	first, err := f.first(ctx, runnel.FromOldest())
	if err != nil {
		return Goal{}, err
	}
	if first == nil {
		if f.shard.Open() {
			return goal, nil
		}
		return ended, nil
	}
	end, next := f.of.Now, runnel.SequenceNumber("") // the end of the search
	if !latest {
		record, err := f.first(ctx, f.to)
		switch {
		case err != nil:
			return Goal{}, err
		case record == nil && !f.shard.Open():
			return ended, nil
		case record != nil:
			next = sequenceOf(record)
		}
		end = f.to.Time()
	}
	if next == sequenceOf(first) {
		return goal, nil
	}
	from, err := f.window(ctx, end, aws.ToTime(first.ApproximateArrivalTimestamp), next)
	if err != nil {
		return Goal{}, err
	}
	return f.last(ctx, from, next)
}

// narrow is the length of a window that is read through.
const narrow = time.Second

// window returns a time not long before the last record before next: from there on, there is such a
// record. There is one from oldest on. It goes back from end in growing steps, and then bisects.
func (f *finder) window(
	ctx context.Context, end, oldest time.Time, next runnel.SequenceNumber,
) (time.Time, error) {
	low, high := end.Add(-narrow), end
	for span := narrow; low.After(oldest); span *= 4 {
		low = end.Add(-span)
		there, err := f.anyBefore(ctx, low, next)
		if err != nil {
			return time.Time{}, err
		}
		if there {
			break
		}
		high = low
	}
	if low.Before(oldest) {
		low = oldest
	}
	for high.Sub(low) > narrow {
		middle := low.Add(high.Sub(low) / 2)
		there, err := f.anyBefore(ctx, middle, next)
		if err != nil {
			return time.Time{}, err
		}
		if there {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

func (f *finder) anyBefore(
	ctx context.Context, from time.Time, next runnel.SequenceNumber,
) (bool, error) {
	record, err := f.first(ctx, runnel.FromTime(from))
	return record != nil && (next == "" || sequenceOf(record).Compare(next) < 0), err
}

// last returns the goal behind the last record before next, from a time on.
func (f *finder) last(
	ctx context.Context, from time.Time, next runnel.SequenceNumber,
) (Goal, error) {
	goal := Goal{Shard: f.shard}
	var decoder aggregate.Decoder
	err := f.read(ctx, runnel.FromTime(from), 0, func(r *types.Record) bool {
		if next != "" && sequenceOf(r).Compare(next) >= 0 {
			return false
		}
		goal.At = runnel.Position{Sequence: sequenceOf(r)}
		goal.Arrival = aws.ToTime(r.ApproximateArrivalTimestamp)
		if decoder.Open(r.Data) && decoder.Len() > 0 {
			goal.At.Sub = int64(decoder.Len() - 1)
		}
		return true
	})
	return goal, err
}

// first returns the first record from a place on; nil if there is none.
func (f *finder) first(ctx context.Context, from runnel.From) (first *types.Record, err error) {
	err = f.read(ctx, from, 1, func(r *types.Record) bool {
		first = r
		return false
	})
	return first, err
}

// read calls take for each record from a place on, until it returns false or there are no more. A
// page without records at the tip shows that an open shard has no more. Under a producer that never
// pauses there is no such page, so a page with a record that arrived after of.Now is the last one.
func (f *finder) read(
	ctx context.Context, from runnel.From, limit int, take func(*types.Record) bool,
) error {
	source := pages.New(pages.Config{
		Kinesis: f.reads, Stream: f.of.Name, Shard: f.shard.ID, From: from, Limit: limit,
		Attempts: 20, Pace: pages.Pace{Least: 200 * time.Millisecond},
		Backoff: retry.Backoff{Min: 50 * time.Millisecond, Max: 2 * time.Second},
	})
	for {
		page, err := source.Next(ctx)
		if err != nil {
			return fmt.Errorf("read shard %s: %w", f.shard.ID, err)
		}
		for i := range page.Records {
			if !take(&page.Records[i]) {
				return nil
			}
		}
		if page.Ended || page.Behind == 0 && len(page.Records) == 0 {
			return nil
		}
		if n := len(page.Records); n > 0 &&
			aws.ToTime(page.Records[n-1].ApproximateArrivalTimestamp).After(f.of.Now) {
			return nil
		}
	}
}

func sequenceOf(r *types.Record) runnel.SequenceNumber {
	return runnel.SequenceNumber(aws.ToString(r.SequenceNumber))
}
