package producer

import (
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/internal/seam"
)

// clock is the core's: the wall clock at the producer's start, carried on by bootclock. It is never
// set, and counts the time that a machine sleeps, so that two of its moments are as far apart as
// they really were. It may be hours off: nothing compares it with the stream's time (see
// streamTime), unless the stream says no time.
type clock struct {
	wall  time.Time
	start bootclock.Instant
	mono  time.Time // as start
	slept atomic.Int64
}

func newClock() *clock {
	return &clock{wall: seam.Wall(), start: bootclock.Now(), mono: time.Now()}
}

// now returns the moment now.
func (c *clock) now() time.Time {
	by := bootclock.Since(c.start)
	c.slept.Store(int64(by - time.Since(c.mono)))
	return c.wall.Add(by)
}

// lately is a cheap now, which does not know yet that the machine slept since the last now. It is
// for the age of records.
func (c *clock) lately() time.Time {
	return c.wall.Add(time.Since(c.mono) + time.Duration(c.slept.Load()))
}

// boot returns the time from the machine's boot to a moment of the clock, and the boot's name; 0
// and "" where the system does not say.
func (c *clock) boot(moment time.Time) (time.Duration, string) {
	if c.start.Boot() == 0 || bootclock.ID() == "" {
		return 0, ""
	}
	return c.start.Boot() + moment.Sub(c.wall), bootclock.ID()
}
