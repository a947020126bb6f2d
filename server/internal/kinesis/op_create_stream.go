package kinesis

import (
	"context"
	"fmt"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
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
	onDemandShards   = 4    // of a stream that is made without a count
	defaultRetention = 24   // hours
	defaultMaxRecord = 1024 // KiB
)

// validate checks the number of shards. The text about on-demand streams is AWS's, as
// CloudFormation shows it (aws-cdk#18247); the other two are guesses.
func (in *createStreamInput) validate(v *violations) {
	if in.ShardCount != nil && in.mode() == catalogue.ModeOnDemand {
		v.fail(fail(codeValidation, "ShardCount is not expected when StreamMode=ON_DEMAND"))
	}
	if in.ShardCount != nil && *in.ShardCount > catalogue.MaxShards {
		v.fail(fail(codeLimit, "A stream can have %d shards at most, not %d.",
			catalogue.MaxShards, *in.ShardCount))
	}
	if in.ShardCount == nil && in.mode() == catalogue.ModeProvisioned {
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
		return catalogue.ModeOnDemand
	default:
		return catalogue.ModeProvisioned
	}
}

// stream returns the stream that the request describes, without shards and tags.
func (in *createStreamInput) stream(world wire.World) (st *catalogue.Stream, shards int) {
	st = &catalogue.Stream{
		World:     world,
		Name:      *in.StreamName,
		Retention: defaultRetention,
		Settings:  catalogue.Settings{Mode: in.mode(), MaxRecord: defaultMaxRecord},
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
	room := ShardMemory * int64(shards)
	if err := s.streams.memory.Take(room); err != nil {
		return nil, err
	}
	defer s.streams.memory.GiveBack(room)
	return nil, s.streams.change(ctx, createSize(shards), func(tx *wal.Tx, now moment) error {
		if s.streams.catalogue.Find(world, st.Name, now) != nil {
			return fail(codeInUse, "Stream %s under account %s already exists.",
				st.Name, world.Account)
		}
		if in.WarmThroughputMiBps != nil {
			account := s.streams.catalogue.Account(world)
			if err := mayWarm(account, st.Mode, st.Warm, now); err != nil {
				return err
			}
		}
		if err := s.limits.mayCreate(st, shards, now); err != nil {
			return err
		}
		return s.streams.catalogue.Create(tx, st, shards, now, s.streams.until(now))
	})
}

// createSize returns the approximate size of a frame that creates so many shards.
func createSize(shards int) int { return 4096 + 256*shards }

// EnsureStream makes a stream with so many shards unless the name exists already, with any shards.
// A new stream is ACTIVE at once. Call it after Start.
func (s *Service) EnsureStream(
	ctx context.Context, world wire.World, name string, shards int,
) error {
	count := integer(shards)
	in := &createStreamInput{StreamName: &name, ShardCount: &count}
	err := s.plans["CreateStream"].validate(in)
	if err == nil && s.streams.peek(world, name, s.streams.clock.read()) == nil {
		st, shards := in.stream(world)
		room := ShardMemory * int64(shards)
		if err := s.streams.memory.Take(room); err != nil {
			return fmt.Errorf("make stream %q: %w", name, err)
		}
		defer s.streams.memory.GiveBack(room)
		err = s.streams.change(ctx, createSize(shards), func(tx *wal.Tx, now moment) error {
			if s.streams.catalogue.Find(world, name, now) != nil {
				return nil
			}
			return s.streams.catalogue.Create(tx, st, shards, now, now.Elapsed)
		})
	}
	if err != nil {
		return fmt.Errorf("make sure that stream %q is there: %w", name, err)
	}
	return nil
}
