package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/endpoint"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/internal/input"
	"github.com/runnel-stream/runnel/internal/putlog"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/internal/vfs"
	"github.com/runnel-stream/runnel/producer"
)

// putState is the journal of a put with --resume. It implements producer.Journal.
type putState struct {
	*putlog.Journal
	broken  func(error) // ends the put when the journal cannot be written
	skipped uint64      // records that were put before
	fixed   bool        // see putSource: a record that no stream takes counts as refused
}

// Frozen implements producer.Journal.
func (s *putState) Frozen(ctx context.Context, units []producer.FrozenUnit) error {
	frozen := make([]putlog.FrozenUnit, len(units))
	for i, unit := range units {
		frozen[i] = putlog.FrozenUnit(unit)
	}
	err := s.Journal.Frozen(ctx, frozen)
	if err != nil && ctx.Err() == nil {
		s.broken(err)
	}
	return err
}

// Settled implements producer.Journal.
func (s *putState) Settled(units []producer.SettledUnit) {
	ends := make([]putlog.SettledUnit, 0, len(units))
	var alone refusals
	for _, unit := range units {
		if unit.Number == 0 {
			alone.add(unit.Marks, reasonOf(unit.Err))
			continue
		}
		end := putlog.SettledUnit{Producer: unit.Producer, Number: unit.Number}
		switch unit.Outcome {
		case producer.OutcomeStored:
			end.Fate = putlog.Stored
		case producer.OutcomeRenewed:
			end.Fate = putlog.Again
		default:
			end.Fate, end.Reason = putlog.Undelivered, reasonOf(unit.Err)
		}
		ends = append(ends, end)
	}
	s.Journal.Settled(ends)
	for _, r := range alone { // after the ends of the units that they were in
		s.Refuse(r.marks, r.reason)
	}
}

// refusals are the marks of records that will not be put, grouped by reason, in their order.
type refusals []struct {
	marks  []uint64
	reason string
}

func (r *refusals) add(marks []uint64, reason string) {
	if last := len(*r) - 1; last >= 0 && (*r)[last].reason == reason {
		(*r)[last].marks = append((*r)[last].marks, marks...)
		return
	}
	*r = append(*r, struct {
		marks  []uint64
		reason string
	}{slices.Clone(marks), reason})
}

// units returns the units that the previous run has left open.
func (s *putState) units() []producer.FrozenUnit {
	var units []producer.FrozenUnit
	for _, unit := range s.Resume() {
		units = append(units, producer.FrozenUnit(unit))
	}
	return units
}

// put puts a record of the input, unless it was put before.
func (s *putState) put(ctx context.Context, p *producer.Producer, record runnel.Record) error {
	mark, skip, err := s.Read(record.Data)
	switch {
	case err != nil:
		return exit.Usage("%w", err)
	case skip:
		s.skipped++
		return nil
	}
	err = p.PutMarked(ctx, record, mark, nil)
	if errors.Is(err, producer.ErrTooLarge) || s.fixed && isInvalid(err) {
		s.Refuse([]uint64{mark}, err.Error())
		return nil
	}
	return err
}

// openState opens the journal and checks that it belongs to this load.
func (f *putFlags) openState(
	ctx context.Context, client *kinesis.Client, format *input.Format, files []string,
) (*putState, error) {
	switch {
	case slices.Contains(files, "-"):
		return nil, exit.Usage("--resume: standard input cannot be read again: name the files")
	case f.order == producer.OrderPlain.String() || f.order == producer.OrderChained.String():
		return nil, exit.Usage("--resume: records of --order %s have no identity by which a "+
			"double is known: use --order key, shard or none", f.order)
	}
	load := putlog.Identity{
		Stream: streamref.Name(f.stream),
		Key:    f.key, HashKey: f.hashKey, Format: f.format, Order: f.order,
	}
	var err error
	if load.Keys, err = f.keys.Identity(); err != nil {
		return nil, err
	}
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			return nil, exit.Usage("%w", err)
		}
		if !info.Mode().IsRegular() {
			return nil, exit.Usage("--resume: %s is no plain file and cannot be read again", name)
		}
		load.Files = append(load.Files, putlog.File{Name: name, Size: info.Size()})
		columns, err := format.Header(ctx, name)
		if err != nil {
			return nil, err
		}
		load.Columns = append(load.Columns, columns)
	}
	if load.Created, err = streamCreated(ctx, client, f.stream, f.giveUpAfter); err != nil {
		return nil, exit.Outside(endpoint.Hint(err, f.stream))
	}
	return openJournal(ctx, f.resume, load, fileSource{format, files})
}

// openJournal opens the journal of a load, and checks that its source is still the same.
func openJournal(
	ctx context.Context, name string, load putlog.Identity, from putSource,
) (*putState, error) {
	journal, err := putlog.Open(filepath.ToSlash(name), load, putlog.Options{})
	if err == nil { // also for a complete load: only the same input counts as complete
		if err = journal.Verify(dataOf(ctx, from)); err != nil {
			err = errors.Join(err, journal.Close())
		}
	}
	return &putState{Journal: journal, fixed: from.fixed()}, stateError(name, err)
}

// stateError sets the exit status of a journal's error: wrong usage, or a failure of the disk.
func stateError(name string, err error) error {
	var known *exit.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, vfs.ErrLocked):
		return exit.Usage("--resume %s: another process is at work with it", name)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, putlog.ErrDamaged),
		errors.Is(err, putlog.ErrOther), errors.Is(err, putlog.ErrInput),
		errors.Is(err, putlog.ErrNotJournal):
		return exit.Usage("--resume: %w", err)
	}
	return exit.Outside(fmt.Errorf("--resume: %w", err))
}

// streamCreated returns the stream's creation time. It retries through outages and throttling.
func streamCreated(
	ctx context.Context, client *kinesis.Client, stream string, giveUpAfter time.Duration,
) (time.Time, error) {
	start := time.Now()
	input := streamref.Describe(stream)
	for {
		out, err := client.DescribeStreamSummary(ctx, input)
		if err == nil {
			return aws.ToTime(out.StreamDescriptionSummary.StreamCreationTimestamp), nil
		}
		late := giveUpAfter > 0 && time.Since(start) > giveUpAfter
		if late || !awserr.Kinesis.Transient(err) {
			return time.Time{}, fmt.Errorf("describe stream %s: %w", stream, err)
		}
		if err := retry.Wait(ctx, 200*time.Millisecond); err != nil {
			return time.Time{}, err
		}
	}
}
