package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/shardmap"
	"github.com/runnel-stream/runnel/lease"
)

// ErrStreamGone is returned if the stream does not exist, or no longer.
var ErrStreamGone = errors.New("there is no such stream: create it, or check its name, the " +
	"region and the endpoint")

// describe returns the stream's identity, and bounds of the time by its clock.
func describe(ctx context.Context, cfg Config) (s lease.Stream, now bounds, err error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.CallTimeout)
	defer cancel()
	sent := time.Now()
	out, err := cfg.Kinesis.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{
		StreamName: aws.String(cfg.Stream),
	})
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
	return lease.Stream{Name: cfg.Stream, Created: *summary.StreamCreationTimestamp}, now, nil
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
// readers of the parents follow splits and merges.
func (r *run) audit(ctx context.Context) error {
	stream, now, err := r.describe(ctx)
	if err != nil {
		return err
	}
	if stream.String() != r.stream.String() {
		return r.recreated(stream)
	}
	// The leases are read first and the shards second: a listed shard without a lease had none
	// then.
	if err := r.table.RefuseKCL3(ctx); err != nil {
		return err
	}
	// The leases are read first and the shards second: a listed shard without a lease had none
	// then.
	leases, skipped, err := r.table.List(ctx)
	if err != nil {
		return err
	}
	r.reportRows(skipped)
	shards, err := r.shards.Shards(ctx, 0)
	if err != nil {
		return err
	}
	if err := r.fits(leases, shards); err != nil {
		return cmp.Or(r.sameStream(ctx), err) // it may have been made again since the look above
	}
	r.once.begin(leases, shards)
	if r.binding.New {
		if leases, err = r.settleOrigin(ctx, leases, shards, now); err != nil {
			return err
		}
	}
	g := newGenealogy(slices.Concat(leases, standIns(skipped)), shards)
	if err := r.create(ctx, g, now); err != nil {
		return err
	}
	if !r.binding.Synced || r.binding.Old() {
		if err := r.table.MarkSynced(ctx, r.binding); err != nil {
			return err
		}
		r.binding = lease.Binding{Origin: r.binding.Origin, Synced: true}
	}
	return r.sweep(ctx, leases, shards)
}

// settleOrigin creates the first lease of a new table: that of the open shard with the smallest id,
// which every worker that begins at the same time finds, whatever its Config.From is. Its row has
// the origin for all, and the mark that others are missing. If the shard comes from one at which
// the application begins, its lease waits for the parent's end, as any child's.
func (r *run) settleOrigin(
	ctx context.Context, leases []lease.Lease, shards []runnel.Shard, now bounds,
) ([]lease.Lease, error) {
	i := slices.IndexFunc(shards, runnel.Shard.Open)
	if i < 0 {
		return leases, nil // the stream is being made or deleted
	}
	beginners, err := r.beginners(ctx, shards)
	if err != nil {
		return nil, err
	}
	origin, first := r.binding.Origin, newLease(shards[i], runnel.FromOldest())
	g := newGenealogy(nil, shards)
	begins := func(id runnel.ShardID) bool { return beginners[id] }
	if begins(first.Key) || !g.any(first.Key, g.up, begins) {
		first = newLease(shards[i], origin)
		first.Complete = later(now.earliest, first.From)
	}
	if r.binding, err = r.table.Begin(ctx, first, origin); err != nil {
		return nil, err
	}
	return append(leases, first), nil
}

// create creates the leases that are missing.
func (r *run) create(ctx context.Context, g *genealogy, now bounds) (err error) {
	var beginners map[runnel.ShardID]bool
	if !r.binding.Synced || g.holes() {
		if beginners, err = r.beginners(ctx, g.shards); err != nil {
			return err
		}
	}
	for _, l := range g.missing(beginners, r.binding.Origin, r.binding.Synced) {
		switch {
		case r.binding.Synced && g.cutOff(l.Key):
			l.Complete = later(r.stream.Created, l.From)
		case beginners[l.Key]:
			// Records that arrive from now on are the application's.
			l.Complete = later(now.earliest, l.From)
		}
		l.Origin = &r.binding.Origin
		_, _, err := r.table.Create(ctx, l)
		if errors.Is(err, lease.ErrUnreadableRow) { // created since the list was read
			r.reportRow(string(l.Key), err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// fits returns an error if the leases are those of another stream: a checkpoint before the shard's
// first record or after its last one, or another range of hash keys. Rows of this package name
// their stream; those of others do not.
func (r *run) fits(leases []lease.Lease, shards []runnel.Shard) error {
	byID := make(map[runnel.ShardID]runnel.Shard, len(shards))
	for _, s := range shards {
		byID[s.ID] = s
	}
	for _, l := range leases {
		s, listed := byID[l.Key]
		if !listed {
			continue
		}
		at, what := l.Checkpoint.Sequence, ""
		switch {
		case l.Range != nil && *l.Range != s.Range:
			what = fmt.Sprintf("its hash keys are %s, and the stream's are %s", *l.Range, s.Range)
		case at.IsNumber() && s.First != "" && at.Compare(s.First) < 0:
			what = fmt.Sprintf("its checkpoint %s is before the shard's first number %s", at,
				s.First)
		case at.IsNumber() && s.Last != "" && at.Compare(s.Last) > 0:
			what = fmt.Sprintf("its checkpoint %s is after the shard's last number %s", at, s.Last)
		default:
			continue
		}
		return fmt.Errorf("lease %s: %s: %w", l.Key, what, &lease.StreamError{
			Table: r.table.Name(), Want: r.stream.String(), Have: "another stream",
		})
	}
	return nil
}

// beginners returns the shards at which the application begins. If the origin is a time, these are
// the shards that were open at that time, which is the same set at every call. Otherwise they are
// the shards without parents.
func (r *run) beginners(
	ctx context.Context, shards []runnel.Shard,
) (map[runnel.ShardID]bool, error) {
	chosen := shards
	if at := r.binding.Origin.Time(); !at.IsZero() {
		var err error
		chosen, err = shardmap.List(ctx, r.cfg.Kinesis, r.cfg.Stream, &types.ShardFilter{
			Type: types.ShardFilterTypeAtTimestamp, Timestamp: aws.Time(at),
		})
		if err != nil {
			return nil, err
		}
	}
	listed := make(map[runnel.ShardID]bool, len(shards))
	for _, s := range shards {
		listed[s.ID] = true
	}
	ids := map[runnel.ShardID]bool{}
	for _, s := range chosen {
		isListed := func(id runnel.ShardID) bool { return listed[id] }
		if !r.binding.Origin.Time().IsZero() || !slices.ContainsFunc(s.Parents, isListed) {
			ids[s.ID] = true
		}
	}
	return ids, nil
}

// sweep deletes the leases of ended shards that were missing from the stream's list in two audits
// in a row. Their records are gone, so no reader needs the leases. As long as a Java worker lives
// it deletes nothing, and leaves that to the Java workers.
func (r *run) sweep(ctx context.Context, leases []lease.Lease, shards []runnel.Shard) error {
	if len(shards) == 0 || r.fleet.looks == 0 || r.fleet.withJava {
		return nil
	}
	listed := make(map[runnel.ShardID]bool, len(shards))
	for _, s := range shards {
		listed[s.ID] = true
	}
	absent := map[runnel.ShardID]bool{}
	for _, l := range leases {
		if !l.Ended() || listed[l.Key] {
			continue
		}
		if !r.absent[l.Key] {
			absent[l.Key] = true
			continue
		}
		if err := r.table.Delete(ctx, l); err != nil && !errors.Is(err, lease.ErrLeaseLost) {
			return err
		}
	}
	r.absent = absent
	return nil
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
