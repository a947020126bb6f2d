package kinesis

import (
	"context"
	"slices"
	"time"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
	"github.com/runnel-stream/runnel/server/internal/memlimit"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// streams is the catalogue as the calls see and change it: with the log, which makes changes
// durable, and the clock, which decides what is there.
type streams struct {
	log       *wal.Log
	catalogue *catalogue.Catalogue
	clock     clock
	delay     time.Duration // Config.StreamDelay
	memory    *memlimit.Limit
}

// changeSize is about the size of the frames of a change.
const changeSize = 4096

// change runs decide under the catalogue's lock inside wal.Log.Sequence. It returns once its
// commit, and everything that decide saw, is durable. size is about that of the frames.
func (s *streams) change(
	ctx context.Context, size int, decide func(tx *wal.Tx, now moment) error,
) error {
	return s.changeBy(ctx, s.log.Sequence, size, decide)
}

// sequence is wal.Log's Sequence or SequenceFreeing. The latter works on a full disk too, for
// changes that free space.
type sequence func(ctx context.Context, size int, fn func(tx *wal.Tx)) error

func (s *streams) changeBy(
	ctx context.Context, by sequence, size int, decide func(tx *wal.Tx, now moment) error,
) error {
	c := s.catalogue
	var decided error
	var seen wal.LSN
	err := by(ctx, size, func(tx *wal.Tx) {
		c.Write(func() {
			decided = decide(tx, s.clock.read())
			seen = c.LSN()
		})
	})
	if err != nil {
		return err
	}
	if err := s.log.Wait(ctx, seen); err != nil {
		return err
	}
	return decided
}

// changeStream is change for a stream that must be there.
func (s *streams) changeStream(
	ctx context.Context, world wire.World, t *target,
	decide func(tx *wal.Tx, st *catalogue.Stream, now moment) error,
) error {
	return s.changeStreamBy(ctx, s.log.Sequence, world, t, decide)
}

func (s *streams) changeStreamBy(
	ctx context.Context, by sequence, world wire.World, t *target,
	decide func(tx *wal.Tx, st *catalogue.Stream, now moment) error,
) error {
	name, err := t.name(world)
	if err != nil {
		return err
	}
	return s.changeBy(ctx, by, changeSize, func(tx *wal.Tx, now moment) error {
		st := s.catalogue.Find(world, name, now)
		if st == nil {
			return streamNotFound(world, name)
		}
		return decide(tx, st, now)
	})
}

// view returns a stream as of its last durable change, without waiting for the disk. If there is no
// such change, or it deleted the stream, view waits until the newest change is durable and returns
// the stream as of that change, or nil if it does not exist.
func (s *streams) view(
	ctx context.Context, world wire.World, name string,
) (st *catalogue.Stream, now moment, err error) {
	s.catalogue.Read(func() {
		now = s.clock.read()
		st = s.catalogue.Find(world, name, now)
	})
	if st = st.Visible(); st != nil && !st.Gone(now) {
		return st, now, nil
	}
	return s.settled(ctx, world, name)
}

// settled returns a stream's newest value, nil if it does not exist, once that answer is durable.
func (s *streams) settled(
	ctx context.Context, world wire.World, name string,
) (st *catalogue.Stream, now moment, err error) {
	var seen wal.LSN
	s.catalogue.Read(func() {
		now = s.clock.read()
		st, seen = s.catalogue.Find(world, name, now), s.catalogue.LSN()
	})
	return st, now, s.log.Wait(ctx, seen)
}

// viewTarget is view for a stream that must be there.
func (s *streams) viewTarget(
	ctx context.Context, world wire.World, t *target,
) (*catalogue.Stream, moment, error) {
	name, err := t.name(world)
	if err != nil {
		return nil, moment{}, err
	}
	st, now, err := s.view(ctx, world, name)
	if err == nil && st == nil {
		err = streamNotFound(world, name)
	}
	return st, now, err
}

// until returns the end of a state that begins now, in elapsed ms.
func (s *streams) until(now moment) int64 {
	return now.Elapsed + max(s.delay, 0).Milliseconds()
}

// untilStamp is until as the arrival of the records that come then.
func (s *streams) untilStamp(now moment) int64 {
	return now.Stamp + max(s.delay, 0).Milliseconds()
}

// peek returns a stream's newest value, durable or not, or nil.
func (s *streams) peek(world wire.World, name string, now moment) (st *catalogue.Stream) {
	s.catalogue.Read(func() { st = s.catalogue.Find(world, name, now) })
	return st
}

// all returns the newest values of all streams, also of those that are gone.
func (s *streams) all() (streams []*catalogue.Stream) {
	s.catalogue.Read(func() { streams = slices.Collect(s.catalogue.All()) })
	return streams
}
