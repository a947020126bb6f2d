package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel/lease"
)

// ErrReplaced is returned if another process with the same WorkerID, which is static, has taken the
// worker's place: its leases are read there, from their last checkpoints on.
var ErrReplaced = errors.New("a younger process with the same WorkerID has taken this one's " +
	"place: give every live worker a name of its own")

// mine looks at the rows that name this worker. It takes those that were passed to it, and those
// that an earlier process of a static worker held. If a later process of that worker has written a
// row or a card, the error is ErrReplaced.
func (f *fleet) mine(ctx context.Context, sightings []lease.Sighting) error {
	r := f.run
	if r.cfg.Static && f.looks == 0 {
		r.static.Number = max(highest(r.cfg.WorkerID, sightings)+1, time.Now().UnixMilli())
	}
	var resumed []lease.Sighting
	for _, s := range sightings {
		if err := f.overtaken(s.Cards[r.cfg.WorkerID].Static); err != nil {
			return err
		}
		ours := s.Owned() && s.Owner == r.cfg.WorkerID
		if ours {
			if err := f.overtaken(s.Static); err != nil {
				return err
			}
		}
		h, held := r.held[s.Key]
		switch {
		case held && (!ours || s.Hold != h.first.Hold):
			h.keeper.renewSoon() // the lease seems to be lost: the keeper finds out
		case !ours || held:
		case s.Passed():
			f.adopt(ctx, s.Lease)
		case r.cfg.Static:
			resumed = append(resumed, s)
		}
	}
	r.take(ctx, resumed, EventLeaseResumed)
	return nil
}

// overtaken returns ErrReplaced if a row or a card of this worker's name is of a later process.
func (f *fleet) overtaken(other lease.Static) error {
	if mine := f.run.static; f.run.cfg.Static && other.Compare(mine) > 0 {
		return fmt.Errorf("worker %s, process %d %s: process %d %s: %w", f.run.cfg.WorkerID,
			mine.Number, mine.Process, other.Number, other.Process, ErrReplaced)
	}
	return nil
}

// highest returns the highest number of a process of the worker.
func highest(worker string, sightings []lease.Sighting) int64 {
	var number int64
	for _, s := range sightings {
		if s.Owned() && s.Owner == worker {
			number = max(number, s.Static.Number)
		}
		number = max(number, s.Cards[worker].Static.Number)
	}
	return number
}
