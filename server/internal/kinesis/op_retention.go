package kinesis

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

type retentionInput struct {
	target
	RetentionPeriodHours *integer
}

// The retention period in hours (AWS, "IncreaseStreamRetentionPeriod").
const (
	minRetention = 24
	maxRetention = 8760
)

func (in *retentionInput) validate(v *violations) {
	in.target.validate(v)
	hours := *in.RetentionPeriodHours
	if hours < minRetention {
		v.fail(invalid("Minimum allowed retention period is %d hours. Requested retention period "+
			"(%d hours) is too short.", minRetention, hours))
	}
	if hours > maxRetention {
		v.fail(invalid("Maximum allowed retention period is %d hours. Requested retention period "+
			"(%d hours) is too long.", maxRetention, hours))
	}
}

// increaseRetention keeps data longer from now on. Expired data stays expired, and the same period
// again is no error.
func (s *Service) increaseRetention(
	ctx context.Context, world wire.World, in *retentionInput,
) (any, error) {
	name, err := in.name(world)
	if err != nil {
		return nil, err
	}
	// settled, since a shorter period may be on its way to the disk
	st, now, err := s.streams.settled(ctx, world, name)
	if err == nil && st == nil {
		err = streamNotFound(world, name)
	}
	if err != nil {
		return nil, err
	}
	if err := s.sweeper.trim(ctx, st, now); err != nil {
		return nil, err
	}
	hours := int64(*in.RetentionPeriodHours)
	by := s.streams.log.Sequence
	return nil, s.retain(ctx, by, world, in, func(st *catalogue.Stream) error {
		if hours < st.Retention {
			return invalid("Requested retention period (%d hours) for stream %s can not be "+
				"shorter than existing retention period (%d hours). Use DecreaseRetentionPeriod "+
				"API.",
				hours, st.Name, st.Retention)
		}
		return nil
	})
}

// decreaseRetention keeps data for a shorter time, and removes at once all data older than that.
func (s *Service) decreaseRetention(
	ctx context.Context, world wire.World, in *retentionInput,
) (any, error) {
	hours := int64(*in.RetentionPeriodHours)
	by := s.streams.log.SequenceFreeing
	err := s.retain(ctx, by, world, in, func(st *catalogue.Stream) error {
		if hours > st.Retention {
			return invalid("Requested retention period (%d hours) for stream %s can not be "+
				"longer than existing retention period (%d hours). Use IncreaseRetentionPeriod "+
				"API.",
				hours, st.Name, st.Retention)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	st, now, err := s.streams.viewTarget(ctx, world, &in.target)
	if err != nil {
		return nil, err
	}
	return nil, s.sweeper.trim(ctx, st, now)
}

// retain sets another period, if it differs. It first removes the expired shards, so that a longer
// period does not bring them back.
func (s *Service) retain(
	ctx context.Context, by sequence, world wire.World, in *retentionInput,
	check func(*catalogue.Stream) error,
) error {
	return s.streams.changeStreamBy(ctx, by, world, &in.target, func(
		tx *wal.Tx, st *catalogue.Stream, now moment,
	) error {
		if err := check(st); err != nil {
			return err
		}
		if status := st.Status(now); status != catalogue.StatusActive {
			return notActive(st, status)
		}
		hours := int64(*in.RetentionPeriodHours)
		if hours == st.Retention {
			return nil
		}
		if err := s.streams.catalogue.Expire(tx, st, now); err != nil {
			return err
		}
		return s.streams.catalogue.Commit(tx, &catalogue.Change{
			Op: catalogue.ChangeRetain, At: now.Stamp, World: &world, Name: st.Name,
			Retention: hours,
		})
	})
}
