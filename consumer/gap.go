package consumer

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/sink"
)

// A reader that stops for longer than the stream's retention period loses records, and Kinesis does
// not say so: an iterator of any kind begins at the oldest record that is left. Sequence numbers
// are sparse, so two of them do not show that a record between them is missing.
//
// The last record that was read does show it. The stream removes the oldest records first. So if
// that record can still be read, no record behind it was removed. Each iterator is made at that
// record (AT_SEQUENCE_NUMBER), so the test costs nothing.
//
// If that record is gone, either records behind it are missing, or the shard was idle. Time
// distinguishes the two cases. guard.complete is a time by the stream's clock up to which the
// reader has read every record that arrived. The stream removes no record that is younger than the
// retention period. So as long as complete is younger, no record was missed. complete is the
// arrival of the last record, or the time of a read that found the tip. The lease row holds it, so
// that it outlives the reader. A child shard begins with its parents' value, since its records
// arrived after theirs.
//
// A live iterator can be overtaken as well. So if an answer comes so late that complete is older
// than the retention period, the reader discards the answer and makes an iterator at its last
// record again. The period itself may have been shortened a moment ago. If a shorter period can
// have removed records between complete and the answer, the reader first asks for the period.
//
// A gap so found is possible and not certain. It is reported all the same, since the other mistake
// is a silent loss. If no record has been read yet, there is no last record to test. A child
// shard's beginning is complete if the stream still lists a parent, since a closed shard is listed
// until all its records have expired.

// guard holds the time up to which a reader has read all records.
type guard struct {
	complete time.Time // zero if it is not known
}

// overtaken reports whether the stream can have removed, by now, unread records.
func (s *shardReader) overtaken(now time.Time) bool {
	return s.horizon().Passed(s.complete, now)
}

// horizon returns the stream's horizon, as of the last look at it.
func (r *run) horizon() shardmap.Horizon {
	return shardmap.Horizon{
		Created: r.stream.Created, Retention: time.Duration(r.kept.Load()),
	}
}

// reading is one answer of GetRecords, and bounds of the time at which the stream made it.
type reading struct {
	*kinesis.GetRecordsOutput
	earliest, latest time.Time
}

func newReading(out *kinesis.GetRecordsOutput, sent, got time.Time) reading {
	a := reading{GetRecordsOutput: out}
	a.earliest, a.latest = awsclient.AnswerTime(sent, got, out.ResultMetadata)
	if n := len(out.Records); n > 0 {
		behind := time.Duration(aws.ToInt64(out.MillisBehindLatest)) * time.Millisecond
		arrival := aws.ToTime(out.Records[n-1].ApproximateArrivalTimestamp).Add(behind)
		if arrival.After(a.latest) {
			a.latest = arrival
		}
	}
	return a
}

// atTip reports whether the reader is at the tip: the stream says so, and returned no record. (Some
// servers say so always.)
func (a *reading) atTip() bool {
	return len(a.Records) == 0 && aws.ToInt64(a.MillisBehindLatest) == 0
}

// arrivesAt returns the arrival of the first record, or, without records, that of the next possible
// one.
func (a *reading) arrivesAt() time.Time {
	if len(a.Records) == 0 {
		return a.latest
	}
	return aws.ToTime(a.Records[0].ApproximateArrivalTimestamp)
}

func (a *reading) ended() bool { return aws.ToString(a.NextShardIterator) == "" }

// watch sets answer.gap if records may be missing before this answer, and moves s.complete.
func (s *shardReader) watch(ctx context.Context, got *reading, a *answer) error {
	if s.unsure && (len(got.Records) > 0 || got.atTip() || got.ended()) {
		var err error
		if a.gap, a.first, err = s.missing(ctx, got); err != nil {
			return err
		}
		s.unsure = false
	}
	switch n := len(got.Records); {
	case s.unsure:
	case n > 0:
		s.complete = aws.ToTime(got.Records[n-1].ApproximateArrivalTimestamp)
	case got.ended():
		// The children take s.complete over, and they were opened before now.
	case got.atTip() && got.earliest.After(s.complete):
		s.complete = got.earliest
	}
	return nil
}

// missing reports whether records between the last one read and this answer, the first one of a new
// iterator, may be missing. If no record was read before, first is the shard's first number.
func (s *shardReader) missing(
	ctx context.Context, got *reading,
) (gap bool, first runnel.SequenceNumber, err error) {
	if s.at != "" {
		there := len(got.Records) > 0 && sequenceOf(&got.Records[0]).Compare(s.at) <= 0
		// A record that is gone although it cannot have expired is a gap as well.
		return !there && (s.horizon().Young(got.latest) || s.overtaken(got.latest)), "", nil
	}
	if s.complete.IsZero() || !s.overtaken(got.latest) {
		return false, "", nil // the application begins here, or has not been away for so long
	}
	shards, err := s.shards.Shards(ctx, 0)
	if err != nil {
		return false, "", err
	}
	for _, other := range shards {
		if other.ID == s.shard {
			first = other.First
		}
		for _, parent := range s.parents {
			if other.ID == parent {
				return false, "", nil
			}
		}
	}
	return true, first, nil
}

// gapBefore returns the gap before a page. If the page holds nothing but the gap, it also returns
// the page's end: a position behind f.after that no record has.
func (f *fetcher) gapBefore() (*sink.Gap, runnel.Position) {
	gap := &sink.Gap{After: f.after, Reason: "the stream has removed the record there, and may " +
		"have removed unread ones behind it"}
	if f.after == runnel.Start() {
		gap.Reason = "the stream may have removed the shard's first records unread"
	}
	switch {
	case len(f.left.records) > 0:
		gap.Before = runnel.Position{Sequence: sequenceOf(&f.left.records[0])}
		return gap, f.after
	case f.left.ended:
		gap.Before = runnel.End()
		return gap, f.after
	case f.after == runnel.Start():
		gap.Before = runnel.Position{Sequence: f.left.first}
	default:
		gap.Before = runnel.Position{Sequence: f.after.Sequence, Sub: f.after.Sub + 1}
	}
	return gap, gap.Before
}

// goneGap returns the gap at the end of a shard that the stream no longer has.
func goneGap(after runnel.Position) *sink.Gap {
	return &sink.Gap{
		After: after, Before: runnel.End(),
		Reason: "the stream removed the shard before its end was read",
	}
}

// reported reports the gap before a page, by the event and a warning.
func (d *delivery) reported(gap *sink.Gap) {
	d.cfg.Logger.Warn("the stream removed records before they were read, by its retention period",
		"worker", d.cfg.WorkerID, "stream", d.cfg.Stream, "shard", string(d.first.Key),
		"after", gap.After.String(), "before", gap.Before.String(), "reason", gap.Reason)
	d.event(Event{Kind: Trimmed, Position: gap.After, Gap: gap})
}

// closeParent ends a parent in the sink that the stream no longer has, and that no other worker can
// end: its lease is gone or ended, and the sink began it, perhaps for another application. It
// returns false if the stream still has the parent.
func (h *holding) closeParent(ctx context.Context, open *sink.ParentError) (bool, error) {
	shards, err := h.shards.Shards(ctx, 0)
	if err != nil || len(shards) == 0 {
		return false, err
	}
	for _, s := range shards {
		if s.ID == open.Parent {
			return false, nil
		}
	}
	if err := h.sameStream(ctx); err != nil {
		return false, err
	}
	writer, err := h.sink.Open(ctx, sink.Shard{
		Stream: h.stream.Name, Created: h.stream.Created, ID: open.Parent,
	})
	if err != nil {
		return false, err
	}
	defer func() { _ = writer.Close() }() // it has committed, or its error is returned
	c := writer.Committed()
	if c.End == runnel.End() {
		return true, nil
	}
	gap := goneGap(c.End)
	h.cfg.Logger.Warn("a parent shard is closed with a gap: the stream no longer has it",
		"worker", h.cfg.WorkerID, "stream", h.cfg.Stream, "shard", string(open.Parent),
		"after", gap.After.String())
	h.observe(Event{Kind: Trimmed, ShardID: open.Parent, Position: gap.After, Gap: gap})
	batch := sink.Batch{Through: c.End, State: func() []byte { return c.State }, Gap: gap}
	if _, err = writer.Write(ctx, batch); err == nil {
		_, err = writer.End(ctx)
	}
	return err == nil, err
}
