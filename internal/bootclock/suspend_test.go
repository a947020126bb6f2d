package bootclock

import (
	"testing"
	"time"
)

// A suspension of the machine counts, unless it may be the time between the readings of the clocks.
func TestSuspensionCounts(t *testing.T) {
	start := Now()
	for slept, want := range map[time.Duration]time.Duration{
		time.Hour: time.Hour + time.Second, time.Millisecond: time.Second,
	} {
		later := Instant{mono: start.mono.Add(time.Second), suspended: start.suspended + slept}
		if by := later.Sub(start); by != want {
			t.Errorf("suspended for %v: %v have gone by, want %v", slept, by, want)
		}
	}
}

// A reading serves while the clocks run alike. It does not after a suspension, a step of the wall
// clock, or a tenth of a second.
func TestAReadingServes(t *testing.T) {
	r := &reading{mono: time.Hour, wall: 1000 * time.Hour, suspended: time.Minute}
	for _, c := range []struct {
		mono, wall time.Duration // since the reading
		want       bool
	}{
		{0, 0, true},
		{freshFor - 1, freshFor - 1, true},
		{50 * time.Millisecond, 50*time.Millisecond + 50*time.Microsecond, true}, // NTP's slew
		{freshFor, freshFor, false},
		{time.Microsecond, leastSuspended, false}, // suspended
		{time.Microsecond, time.Hour, false},
		{time.Microsecond, -time.Hour, false},                           // set back
		{-time.Microsecond, 0, false},                                   // of another goroutine, later
		{-30 * 365 * 24 * time.Hour, -30 * 365 * 24 * time.Hour, false}, // a bubble's
	} {
		now := reading{mono: r.mono + c.mono, wall: r.wall + c.wall}
		if got := r.serves(now); got != c.want {
			t.Errorf("after %v, %v by the wall clock: %v", c.mono, c.wall, got)
		}
	}
}

// Now reads the clocks again after a suspension.
func TestASuspensionIsRead(t *testing.T) {
	Now()
	was := latest.Load()
	defer latest.Store(was)
	earlier := *was
	earlier.wall -= time.Hour // as if the wall clock had jumped since
	earlier.suspended -= time.Hour
	latest.Store(&earlier)
	if slept := Now().suspended - earlier.suspended; slept < time.Hour-time.Second {
		t.Errorf("%v of an hour", slept)
	}
}
