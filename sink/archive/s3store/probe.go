package s3store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/runnel-stream/runnel/sink/archive"
)

// ErrConditionIgnored is returned by Probe if the store has created an object twice.
var ErrConditionIgnored = errors.New("the store ignores the header If-None-Match, so two workers " +
	"could write one object, and records would be lost and doubled: use a store that honours it " +
	"for PutObject")

// The objects of a probe, directly below the prefix. List hides them. They stay there, so that the
// role needs no right to delete.
const (
	probeName = ".runnel-probe"
	raceName  = ".runnel-race"
	racers    = 8
)

// Probe finds out at the start of a program that the bucket is there, that it may write, and that
// the store honours the condition. The first probe of a prefix races creates of a fixed object, of
// which one may win; and each creates another fixed object until that is refused, as it must be the
// second time. ErrConditionIgnored: the store ignores the condition.
func (s *Store) Probe(ctx context.Context) error {
	switch body, err := s.Get(ctx, probeName); {
	case err == nil:
		_ = body.Close() // only its name matters
	case !errors.Is(err, archive.ErrObjectNotFound):
		return err
	default:
		if err := s.race(ctx); err != nil {
			return err
		}
	}
	for range 2 {
		err := s.PutIfAbsent(ctx, probeName, []byte("runnel\n"))
		if errors.Is(err, archive.ErrObjectExists) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", s.place(), ErrConditionIgnored)
}

func (s *Store) race(ctx context.Context) error {
	var won atomic.Int64
	var group errgroup.Group
	for n := range racers {
		group.Go(func() error {
			err := s.PutIfAbsent(ctx, raceName, fmt.Appendf(nil, "racer %d\n", n))
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, archive.ErrObjectExists):
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if n := won.Load(); n > 1 {
		return fmt.Errorf("%s: %d of %d creates of one object won: %w", s.place(), n, racers,
			ErrConditionIgnored)
	}
	return nil
}
