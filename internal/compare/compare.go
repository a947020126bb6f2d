// Package compare compares an archive with its stream, record by record: from the archive alone a
// record that was taken out together with its count cannot be seen.
//
// It verifies the archive first, and then reads the stream as a worker does: the same opener and
// the same filter of doubles, which begins with the state that the archive has there. The records
// of a shard lie in one order in both, so the comparison is a merge of two sequences.
package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/follow"
	"github.com/runnel-stream/runnel/internal/opener"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/sink/archive"
)

// Config is the configuration of Run. Stream, Kinesis and Archive are needed.
type Config struct {
	// Stream is the stream's name or ARN; the archive has it under the same name and creation time.
	Stream string
	// Kinesis reads the stream.
	Kinesis follow.KinesisAPI
	// Archive has the records.
	Archive *archive.Reader
	// Verify are the options of the verification that comes first; Stream and Since are set here.
	Verify archive.VerifyOptions
	// Since leaves out the records that arrived before. Default: the retention period less an hour,
	// or nothing in a stream that is younger.
	Since time.Time
	// Complete makes records behind the archive's tips a violation.
	Complete bool
	// Void is the policy for void aggregates with which the archive was made.
	Void opener.Void
	// OnNotice gets the events of the reading. Default none.
	OnNotice func(follow.Notice)
}

// reserve is the part of the retention period that is not compared, since the stream may remove
// records meanwhile.
const reserve = time.Hour

const callTimeout = 20 * time.Second

// patience is the time after which an outage of the stream ends the comparison.
const patience = 2 * time.Minute

// Run verifies the archive, compares it with the stream, and returns the report of both. It returns
// archive.ErrStreamNotFound if the archive has other streams, and ErrOther if it has another stream
// of that name; and the errors of Verify and of follow.Run.
func Run(ctx context.Context, cfg Config) (*archive.Report, error) {
	c := &comparison{ctx: ctx, cfg: cfg, shards: map[runnel.ShardID]*shard{}}
	if err := c.describe(ctx); err != nil {
		return nil, fmt.Errorf("describe stream %s: %w", cfg.Stream, err)
	}
	if err := c.choose(ctx); err != nil {
		return nil, err
	}
	options := cfg.Verify
	options.Stream, options.Since = c.stream.String(), c.since
	report, err := cfg.Archive.Verify(ctx, options)
	if err != nil {
		return nil, err
	}
	report.Stream = &archive.StreamReport{
		Name: streamref.Name(cfg.Stream), Since: c.since, Complete: cfg.Complete,
	}
	c.report, c.limit = report.Stream, cmp.Or(options.Examples, 10)
	for _, tail := range report.Tails {
		c.shards[tail.ShardID] = &shard{of: c, id: tail.ShardID, tail: tail, archived: true}
	}
	defer c.close()
	err = follow.Run(ctx, follow.Config{
		Stream: cfg.Stream, Kinesis: cfg.Kinesis, Once: true,
		Created: c.horizon.Created, GiveUp: patience, Void: cfg.Void,
		Begin: c.begin, Handle: c.handle, OnNotice: c.notice,
	})
	if err != nil {
		return nil, err
	}
	return report, c.finish()
}

// ErrSince is returned for a Config.Since in the future.
var ErrSince = errors.New("nothing has arrived since a time in the future")

// ErrOther is returned if the archive has another stream of the same name.
var ErrOther = errors.New("the archive is of another stream of that name")

// describe sets the stream's identity, and the time since which records are compared, by the
// stream's clock.
func (c *comparison) describe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	sent := time.Now()
	out, err := c.cfg.Kinesis.DescribeStreamSummary(ctx, streamref.Describe(c.cfg.Stream))
	if err != nil {
		return err
	}
	summary := out.StreamDescriptionSummary
	c.horizon = shardmap.Horizon{
		Created:   aws.ToTime(summary.StreamCreationTimestamp),
		Retention: time.Duration(aws.ToInt32(summary.RetentionPeriodHours)) * time.Hour,
	}
	c.stream = archive.Stream{
		Name:    streamref.Name(c.cfg.Stream),
		Created: c.horizon.Created.Truncate(time.Millisecond).UTC(),
	}
	_, now := awsclient.AnswerTime(sent, time.Now(), out.ResultMetadata)
	c.now, c.asked = now, time.Now()
	if c.cfg.Since.After(now) {
		return fmt.Errorf("%w: %s, and the stream's time is %s", ErrSince,
			c.cfg.Since.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if now.Sub(c.horizon.Created) >= c.horizon.Retention-reserve {
		c.since = now.Add(reserve - c.horizon.Retention).Truncate(time.Millisecond).UTC()
	}
	if c.cfg.Since.After(c.since) {
		c.since = c.cfg.Since.Truncate(time.Millisecond).UTC()
	}
	return nil
}

// choose checks that the archive has the stream.
func (c *comparison) choose(ctx context.Context) error {
	streams, err := c.cfg.Archive.Streams(ctx)
	if err != nil {
		return err
	}
	var others []archive.Stream
	for _, stream := range streams {
		if stream == c.stream {
			return nil
		}
		if stream.Name == c.stream.Name {
			others = append(others, stream)
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("%w: it has %s, and the stream %s was created at %s", ErrOther,
			others[len(others)-1], c.cfg.Stream, c.stream.Created.Format(time.RFC3339Nano))
	}
	return nil // the verification lists the streams
}

// begin returns where the comparison of a shard begins.
func (c *comparison) begin(
	ctx context.Context, listed runnel.Shard, inherited *aggregate.Filter,
) (follow.Beginning, error) {
	s := c.shard(listed)
	at := follow.Beginning{Complete: c.since}
	if !s.archived { // read as a whole, since its children's filters begin with its units
		return at, nil
	}
	states, err := c.cfg.Archive.TailStates(ctx, s.tail)
	var filters []*aggregate.Filter
	if err == nil {
		filters, err = restore(states)
	}
	if errors.Is(err, archive.ErrUnusableLink) || errors.Is(err, archive.ErrContentsDiffer) ||
		errors.Is(err, archive.ErrObjectNotFound) {
		s.stop(err.Error()) // the verification has reported the link
		at.After, err = runnel.End(), nil
	}
	if err != nil || at.After == runnel.End() {
		return at, err
	}
	if s.tail.Start == runnel.Start() { // elsewhere the state contains the parents' units
		filters = append(filters, inherited)
	}
	at.After, at.Filter = s.tail.Start, aggregate.Union(filters...)
	return at, nil
}

// restore makes the filters of states.
func restore(states [][]byte) ([]*aggregate.Filter, error) {
	var filters []*aggregate.Filter
	for _, state := range states {
		if len(state) == 0 {
			continue
		}
		filter := new(aggregate.Filter)
		if err := filter.UnmarshalBinary(state); err != nil {
			return nil, fmt.Errorf("%w: the reader's state: %w", archive.ErrUnusableLink, err)
		}
		filters = append(filters, filter)
	}
	return filters, nil
}
