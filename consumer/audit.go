package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/lease"
)

// ErrStreamGone is returned if the stream does not exist, or no longer.
var ErrStreamGone = errors.New("there is no such stream: create it, or check its name, the " +
	"region and the endpoint")

var errNoOpenShard = errors.New("the stream lists no open shard: it is being made or deleted")

// describe returns the stream's identity, and bounds of the time by its clock.
func describe(ctx context.Context, cfg Config) (s lease.Stream, now bounds, err error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.CallTimeout)
	defer cancel()
	sent := time.Now()
	out, err := cfg.Kinesis.DescribeStreamSummary(ctx, streamref.Describe(cfg.Stream))
	if awserr.Kinesis.Of(err) == awserr.Missing {
		err = errors.Join(ErrStreamGone, err)
	}
	if err != nil {
		return s, now, fmt.Errorf("stream %s: %w", cfg.Stream, err)
	}
	now.earliest, now.latest = awsclient.AnswerTime(sent, time.Now(), out.ResultMetadata)
	now.date = awsclient.Date(sent, out.ResultMetadata)
	summary := out.StreamDescriptionSummary
	if summary != nil {
		now.retention = time.Duration(aws.ToInt32(summary.RetentionPeriodHours)) * time.Hour
	}
	if summary == nil || summary.StreamCreationTimestamp == nil {
		return s, now, fmt.Errorf("stream %s: the answer has no creation time", cfg.Stream)
	}
	if summary.StreamStatus == types.StreamStatusDeleting {
		return s, now, fmt.Errorf("stream %s is being deleted: %w", cfg.Stream, ErrStreamGone)
	}
	if summary.StreamStatus == types.StreamStatusCreating {
		return s, now, fmt.Errorf("stream %s is still being created", cfg.Stream)
	}
	s = lease.Stream{
		Name: streamref.Name(cfg.Stream), Created: *summary.StreamCreationTimestamp,
	}
	return s, now, nil
}

// bounds are the bounds of the time by the stream's clock, at the moment of an answer. retention is
// the stream's retention period; 0 if the answer did not contain it.
type bounds struct {
	earliest, latest time.Time
	date             time.Time // of the answer, in whole seconds
	retention        time.Duration
}

// audit compares the stream's shards with the table's leases, and creates the missing leases. In a
// new table these are all leases. Later there are none, unless a person deleted rows, because the
// readers of the parents follow splits and merges. A worker makes one before it reads anything: so
// whoever reads a shard has seen to it that the shards before it have their leases.
func (r *run) audit(ctx context.Context) error {
	stream, now, err := r.describe(ctx)
	if err != nil {
		return err
	}
	if stream.String() != r.stream.String() {
		return r.recreated(stream)
	}
	if err := r.table.RefuseKCL3(ctx); err != nil {
		return err
	}
	// The leases are read first and the shards second: a listed shard without a lease had none
	// then.
	v := lease.ShardView{
		Created: r.stream.Created, Now: now.earliest, Absent: r.absent,
		Java: r.fleet.looks == 0 || r.fleet.withJava,
	}
	if err := r.readLeases(ctx, &v); err != nil {
		return err
	}
	if v.Shards, err = r.shards.Shards(ctx, 0); err != nil {
		return err
	}
	if err := r.table.Fits(v.Leases, v.Shards); err != nil {
		return cmp.Or(r.sameStream(ctx), err) // it may have been made again since the look above
	}
	r.once.begin(v.Leases, v.Shards)
	if r.binding.New {
		if err := r.settleOrigin(ctx, &v); err != nil {
			return err
		}
	}
	r.figures.list(v.Shards)
	v.Origin, v.Synced = r.binding.Origin, r.binding.Synced
	if !v.Synced || v.Holes() {
		if v.OpenAtOrigin, err = r.openAtOrigin(ctx, v.Origin); err != nil {
			return err
		}
	}
	return r.carryOut(ctx, v.Plan())
}

func (r *run) readLeases(ctx context.Context, v *lease.ShardView) error {
	leases, skipped, err := r.table.List(ctx)
	if err != nil {
		return err
	}
	r.reportRows(skipped)
	v.Leases, v.Unreadable = leases, make([]runnel.ShardID, len(skipped))
	for i, s := range skipped {
		v.Unreadable[i] = runnel.ShardID(s.Key)
	}
	return nil
}

// settleOrigin settles the origin of a new table, by the steps of lease.Table.Begin, and updates
// the view.
func (r *run) settleOrigin(ctx context.Context, v *lease.ShardView) error {
	v.Origin = r.binding.Origin
	for {
		found, err := r.table.Bind(ctx, v.Origin)
		if err != nil {
			return err
		}
		if v.Origin = found.Origin; found.Synced || found.Old() {
			r.binding = found // others have begun it
			return r.readLeases(ctx, v)
		}
		if v.OpenAtOrigin, err = r.openAtOrigin(ctx, v.Origin); err != nil {
			return err
		}
		first, open := v.First()
		if !open {
			return errNoOpenShard
		}
		bound, stands, err := r.table.Begin(ctx, first, v.Origin)
		if err != nil {
			return err
		}
		v.Origin = bound.Origin
		if err := r.readLeases(ctx, v); err != nil {
			return err
		}
		if v.Shards, err = r.shards.Shards(ctx, 0); err != nil {
			return err
		}
		if again, _ := v.First(); again.Key == stands.Key {
			r.binding = bound
			return nil
		}
	}
}

// carryOut creates and deletes the leases of a plan.
func (r *run) carryOut(ctx context.Context, plan lease.ShardPlan) error {
	if err := r.create(ctx, plan.Create); err != nil {
		return err
	}
	if !r.binding.Synced || r.binding.Old() {
		if err := r.table.MarkSynced(ctx, r.binding); err != nil {
			return err
		}
		r.binding = lease.Binding{Origin: r.binding.Origin, Synced: true}
	}
	for _, l := range plan.Delete {
		r.states.remove(ctx, l)
		if err := r.table.Delete(ctx, l); err != nil && !errors.Is(err, lease.ErrLeaseLost) {
			return err
		}
	}
	r.absent = plan.Absent
	return nil
}

// openAtOrigin returns the shards that were open when the application began; none if it began with
// the oldest record. It is the same set at every call, but for shards that the stream has removed.
func (r *run) openAtOrigin(ctx context.Context, origin runnel.From) ([]runnel.ShardID, error) {
	at := origin.Time()
	if at.IsZero() {
		return nil, nil
	}
	open, err := shardmap.List(ctx, r.cfg.Kinesis, r.cfg.Stream, &types.ShardFilter{
		Type: types.ShardFilterTypeAtTimestamp, Timestamp: aws.Time(at),
	})
	return idsOf(open), err
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
