package producer

import (
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/internal/seam"
)

// clock is the core's clock. It starts with the wall clock at the start of the producer, and goes
// on by bootclock. So it is never set and it counts the time that the machine sleeps: the
// difference of two of its times is the real time between them. It may be hours wrong, since it is
// not compared with the stream's time (see streamTime), unless the stream's answers have no time.
type clock struct {
	wall  time.Time
	start bootclock.Instant
	mono  time.Time    // the same moment as start, by Go's monotonic clock
	slept atomic.Int64 // nanoseconds that bootclock is ahead of mono, as of the last now
}

func newClock() *clock {
	return &clock{wall: seam.Wall(), start: bootclock.Now(), mono: time.Now()}
}

// now returns the present time.
func (c *clock) now() time.Time {
	by := bootclock.Since(c.start)
	c.slept.Store(int64(by - time.Since(c.mono)))
	return c.wall.Add(by)
}

// lately is a cheaper now, for the age of records. It does not include sleep of the machine since
// the last now.
func (c *clock) lately() time.Time {
	return c.wall.Add(time.Since(c.mono) + time.Duration(c.slept.Load()))
}

// boot returns the time from the machine's boot to a time of the clock, and the id of the boot; 0
// and "" if the system does not provide them.
func (c *clock) boot(moment time.Time) (time.Duration, string) {
	if c.start.Boot() == 0 || bootclock.ID() == "" {
		return 0, ""
	}
	return c.start.Boot() + moment.Sub(c.wall), bootclock.ID()
}
