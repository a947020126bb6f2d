package aggregate

import (
	"cmp"
	"slices"
	"time"

	"github.com/runnel-stream/runnel/internal/seam"
)

// maxClock is the highest value of a filter's clock, so that no state makes it overflow.
const maxClock = 1 << 62

// Advance moves the filter's clock by the arrival of a record without a unit. Once in every H of
// that clock it forgets the producers whose last record is more than 4H old. Admit calls it for a
// record with a unit.
//
// Copies of a unit lie at most 3H apart, so a filter has to remember a producer for 3H after its
// last record. The plain way is to compare arrival stamps. It fails when the server's clock steps
// forward: the stamps of a unit and of its retry are then further apart than the two calls were,
// and the retry is delivered again. So the filter has a clock of its own. It is the sum of the
// steps from each highest arrival to the next one, and a step counts as at most H/5. A forward step
// of the server's clock lies within one step, and so adds at most H/5 to the time that went by. The
// filter remembers 4H of its clock: five such steps fit between two copies. A stamp that is not
// above the highest one, from a clock that stepped back, adds nothing. If the server's clock never
// steps, and a record arrives at least every H/5, the filter's clock and the stamps advance
// equally. With fewer records a filter only remembers for longer.
func (f *Filter) Advance(arrival time.Time) {
	now := arrival.UnixMilli()
	if now <= f.arrival {
		return // an unknown arrival, or a clock that stepped back
	}
	h := horizon()
	step := min(now-f.arrival, maxStep())
	if f.arrival == 0 {
		step = 0 // the first arrival begins the clock
	}
	before := f.clock
	f.arrival, f.clock = now, min(f.clock+step, maxClock)
	// Once in every H, at times that depend on nothing but the arrivals.
	if f.clock/h == before/h {
		return
	}
	for id, p := range f.producers {
		if f.clock-p.last > rememberH*h {
			f.forget(id)
		}
	}
}

// Elapsed returns the filter's clock: the time counted since the filter was empty, which includes
// the clock of a state that it began with. See Advance.
func (f *Filter) Elapsed() time.Duration { return time.Duration(f.clock) * time.Millisecond }

// Remembers returns the time, on the filter's clock, for which the filter remembers a producer
// after the producer's last record.
func (f *Filter) Remembers() time.Duration {
	return rememberH * time.Duration(horizon()) * time.Millisecond
}

// horizon returns H in milliseconds.
func horizon() int64 {
	return max(1, seam.H().Milliseconds())
}

// maxStep returns the cap on the step between two arrivals, in milliseconds.
func maxStep() int64 { return max(1, horizon()/stepsInH) }

// Empty reports whether the filter remembers no producer.
func (f *Filter) Empty() bool { return len(f.producers) == 0 }

func (f *Filter) forget(id ProducerID) {
	f.lanes -= len(f.producers[id].lanes)
	delete(f.producers, id)
	if f.changes != nil {
		f.changes.remove(id)
	}
}

// makeRoom reports whether there is room for a lane, and for a new producer if asked. A full filter
// first forgets producers, the longest silent first, down to seven eighths of its limits. It keeps
// producers with a record within the last H/5 of its clock: those are in use. Without eviction a
// shard with one large run a day would fill up after a few runs, since a day counts as H/5. A full
// filter evicts at most once in H/5 of its clock, so that it is not slow.
func (f *Filter) makeRoom(newProducer bool) bool {
	full := func() bool {
		return newProducer && len(f.producers) >= MaxProducers || f.lanes >= MaxLanes
	}
	if !full() {
		return true
	}
	if step := maxStep(); f.clock >= f.fullUntil {
		f.fullUntil = f.clock + step
		f.evict(MaxProducers*7/8, MaxLanes*7/8, f.clock-step)
	}
	return !full()
}

// evict forgets producers, the longest silent first, down to the given numbers of producers and
// lanes. It keeps those whose last record came after until, on the filter's clock.
func (f *Filter) evict(producers, lanes int, until int64) {
	var silent []ProducerID
	for id, p := range f.producers {
		if p.last <= until {
			silent = append(silent, id)
		}
	}
	slices.SortFunc(silent, func(a, b ProducerID) int {
		return cmp.Or(cmp.Compare(f.producers[a].last, f.producers[b].last), compareIDs(a, b))
	})
	for _, id := range silent {
		if len(f.producers) <= producers && f.lanes <= lanes {
			return
		}
		f.forget(id)
		f.Counts.Evicted++
	}
}
