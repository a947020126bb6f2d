package pages

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
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
// arrival of the last record, or the time of a read that found the tip. A consumer's lease row
// holds it, so that it outlives the reader. A child shard begins with its parents' value, since its
// records arrived after theirs.
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

// guard detects records that were removed before they were read.
type guard struct {
	of       Stream
	shard    runnel.ShardID
	parents  []runnel.ShardID
	complete time.Time // zero if it is not known
	unsure   bool      // the iterator's first records show whether any is missing
}

// overtaken reports whether the stream can have removed, by now, unread records.
func (g *guard) overtaken(now time.Time) bool { return g.of.Horizon().Passed(g.complete, now) }

// answer is one answer of GetRecords, and bounds of the time at which the stream made it.
type answer struct {
	*kinesis.GetRecordsOutput
	earliest, latest time.Time
}

func newAnswer(out *kinesis.GetRecordsOutput, sent, got time.Time) answer {
	a := answer{GetRecordsOutput: out}
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

// behind returns the distance to the tip. A server that does not say it may have more records
// behind some.
func (a *answer) behind() time.Duration {
	if a.MillisBehindLatest == nil && len(a.Records) > 0 {
		return time.Millisecond
	}
	return time.Duration(aws.ToInt64(a.MillisBehindLatest)) * time.Millisecond
}

// atTip reports whether the reader is at the tip: the stream says so, and returned no record. (Some
// servers say so always.)
func (a *answer) atTip() bool {
	return len(a.Records) == 0 && aws.ToInt64(a.MillisBehindLatest) == 0
}

// arrivesAt returns the arrival of the first record, or, without records, that of the next possible
// one.
func (a *answer) arrivesAt() time.Time {
	if len(a.Records) == 0 {
		return a.latest
	}
	return aws.ToTime(a.Records[0].ApproximateArrivalTimestamp)
}

func (a *answer) ended() bool { return aws.ToString(a.NextShardIterator) == "" }

// overtakes reports whether an answer comes so late that it may leave records out. It asks for the
// retention period again if a shorter one can have removed records before the answer.
func (g *guard) overtakes(ctx context.Context, got *answer) (bool, error) {
	if g.unsure {
		return false, nil
	}
	if g.of.Horizon().Shortened(g.complete, got.arrivesAt(), got.latest) {
		if err := g.of.Same(ctx); err != nil {
			return false, err
		}
	}
	return g.overtaken(got.latest), nil
}

// watch reports whether records may be missing before an answer, and moves g.complete. last is the
// last record read before, or the one at which the reading begins. If there is none, first is the
// shard's first number.
func (g *guard) watch(
	ctx context.Context, got *answer, last runnel.SequenceNumber,
) (gap bool, first runnel.SequenceNumber, err error) {
	if g.unsure && (len(got.Records) > 0 || got.atTip() || got.ended()) {
		if gap, first, err = g.missing(ctx, got, last); err != nil {
			return false, "", err
		}
		g.unsure = false
	}
	switch n := len(got.Records); {
	case g.unsure:
	case n > 0:
		g.complete = aws.ToTime(got.Records[n-1].ApproximateArrivalTimestamp)
	case got.ended():
		// The children take g.complete over, and they were opened before now.
	case got.atTip() && got.earliest.After(g.complete):
		g.complete = got.earliest
	}
	return gap, first, nil
}

// missing reports whether records between the last one read and this answer, the first one of a new
// iterator, may be missing.
func (g *guard) missing(
	ctx context.Context, got *answer, last runnel.SequenceNumber,
) (gap bool, first runnel.SequenceNumber, err error) {
	if last != "" {
		there := len(got.Records) > 0 && sequenceOf(&got.Records[0]).Compare(last) <= 0
		// A record that is gone although it cannot have expired is a gap as well.
		return !there && (g.of.Horizon().Young(got.latest) || g.overtaken(got.latest)), "", nil
	}
	if g.complete.IsZero() || !g.overtaken(got.latest) {
		return false, "", nil // the application begins here, or has not been away for so long
	}
	shards, err := g.of.Shards(ctx)
	if err != nil {
		return false, "", err
	}
	isParent := func(s runnel.Shard) bool { return slices.Contains(g.parents, s.ID) }
	if slices.ContainsFunc(shards, isParent) {
		return false, "", nil
	}
	for _, s := range shards {
		if s.ID == g.shard {
			first = s.First
		}
	}
	return true, first, nil
}
