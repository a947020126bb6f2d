package kinesis

import (
	"context"
	"fmt"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

type createStreamInput struct {
	StreamName          *string
	ShardCount          *integer
	StreamModeDetails   *streamModeDetails
	Tags                map[string]*string
	WarmThroughputMiBps *integer
	MaxRecordSizeInKiB  *integer
}

type streamModeDetails struct{ StreamMode *string }

const (
	maxShards        = 10_000 // of a stream (AWS, "UpdateShardCount"); bounds a frame's size
	onDemandShards   = 4      // of a stream that is made without a count
	defaultRetention = 24     // hours
	defaultMaxRecord = 1024   // KiB
)

// validate checks the number of shards. The text about on-demand streams is AWS's, as
// CloudFormation shows it (aws-cdk#18247); the other two are guesses.
func (in *createStreamInput) validate(v *violations) {
	if in.ShardCount != nil && in.mode() == modeOnDemand {
		v.fail(fail(codeValidation, "ShardCount is not expected when StreamMode=ON_DEMAND"))
	}
	if in.ShardCount != nil && *in.ShardCount > maxShards {
		v.fail(fail(codeLimit, "A stream can have %d shards at most, not %d.",
			maxShards, *in.ShardCount))
	}
	if in.ShardCount == nil && in.mode() == modeProvisioned {
		v.fail(invalid("ShardCount is required for a stream in the PROVISIONED mode."))
	}
}

// mode is PROVISIONED unless the request names another mode or gives no number of shards: AWS was
// seen to make four shards then, as it does in the ON_DEMAND mode.
func (in *createStreamInput) mode() string {
	switch {
	case in.StreamModeDetails != nil && in.StreamModeDetails.StreamMode != nil:
		return *in.StreamModeDetails.StreamMode
	case in.ShardCount == nil:
		return modeOnDemand
	default:
		return modeProvisioned
	}
}

// stream returns the stream that the request describes, without shards and tags.
func (in *createStreamInput) stream(world wire.World) (st *stream, shards int) {
	st = &stream{
		World:     world,
		Name:      *in.StreamName,
		Retention: defaultRetention,
		settings:  settings{Mode: in.mode(), MaxRecord: defaultMaxRecord},
	}
	if in.MaxRecordSizeInKiB != nil {
		st.MaxRecord = int64(*in.MaxRecordSizeInKiB)
	}
	if in.WarmThroughputMiBps != nil {
		st.Warm = int64(*in.WarmThroughputMiBps)
	}
	if in.ShardCount == nil {
		return st, onDemandShards
	}
	return st, int(*in.ShardCount)
}

// createStream makes a stream with shards of equal size. It is CREATING for the stream delay.
func (s *Service) createStream(
	ctx context.Context, world wire.World, in *createStreamInput,
) (any, error) {
	st, shards := in.stream(world)
	var err error
	if st.Tags, err = addTags(nil, in.Tags, streamOwner(world, st.Name)); err != nil {
		return nil, err
	}
	return nil, s.change(ctx, createSize(shards), func(tx *wal.Tx, now int64) error {
		if s.catalogue.find(world, st.Name, now) != nil {
			return fail(codeInUse, "Stream %s under account %s already exists.",
				st.Name, world.Account)
		}
		if in.WarmThroughputMiBps != nil {
			if err := s.catalogue.mayWarm(world, st.Mode, st.Warm, now); err != nil {
				return err
			}
		}
		if err := s.mayCreate(st, shards, now); err != nil {
			return err
		}
		return s.catalogue.create(tx, st, shards, now, s.until(now))
	})
}

// createSize returns the approximate size of a frame that creates so many shards.
func createSize(shards int) int { return 4096 + 256*shards }

// create fills in the stream's times and shards and commits it. First it removes the rest of a
// deleted stream of that name. Sequence numbers and creation times are above those of every deleted
// stream, so that nothing of theirs is taken for the new stream's.
func (c *catalogue) create(tx *wal.Tx, st *stream, shards int, now, until int64) error {
	if old := c.streams[st.key()]; old != nil {
		if err := c.drop(tx, old, now); err != nil {
			return err
		}
	}
	st.Created = max(now, c.state.DroppedAt+1)
	created := max(now/1000, c.state.DroppedNumber+1)
	if until > now {
		st.Phase, st.Until = statusCreating, until
	}
	for i, r := range keyspace.Uniform(shards) {
		st.Shards = append(st.Shards, &shard{
			Index:   uint32(i),
			Log:     c.state.NextLog + shardlog.ID(i),
			Range:   r,
			Created: created,
			Opened:  st.Created,
		})
	}
	st.Next = uint32(shards)
	return c.commit(tx, &change{Op: changeCreate, At: now, Name: st.Name, Stream: st})
}

// EnsureStream makes a stream with so many shards unless the name exists already, with any shards.
// A new stream is ACTIVE at once. Call it after Start.
func (s *Service) EnsureStream(
	ctx context.Context, world wire.World, name string, shards int,
) error {
	count := integer(shards)
	in := &createStreamInput{StreamName: &name, ShardCount: &count}
	err := s.plans["CreateStream"].validate(in)
	if err == nil {
		st, shards := in.stream(world)
		err = s.change(ctx, createSize(shards), func(tx *wal.Tx, now int64) error {
			if s.catalogue.find(world, name, now) != nil {
				return nil
			}
			return s.catalogue.create(tx, st, shards, now, now)
		})
	}
	if err != nil {
		return fmt.Errorf("make sure that stream %q is there: %w", name, err)
	}
	return nil
}
