// Package bootclock measures elapsed time, including sleep and stops of the process.
//
// Neither of Go's two clocks is enough for a promise about a duration: people and NTP step the wall
// clock, and the monotonic one does not count while the machine is suspended. Linux has a clock
// that only ever advances and counts suspension too, CLOCK_BOOTTIME (clock_gettime(2)).
//
// This package adds the time of suspensions to Go's monotonic clock. So its time is virtual in a
// testing/synctest bubble, and the real duration of a test does not count there.
package bootclock

import (
	"sync/atomic"
	"time"
)

// Instant is a moment. Instants of one process can be compared. Those of different processes can be
// compared by Boot, as long as ID is the same. The zero value is no moment.
type Instant struct {
	mono      time.Time
	suspended time.Duration
}

// The process's starting moment, from which suspensions and Instant.Boot count.
var base, baseBoot = time.Now(), sinceBoot()

// leastSuspended is the shortest suspension that counts. A shorter difference may be the time
// between the readings of two clocks.
const leastSuspended = 10 * time.Millisecond

const mostSuspended = 10 * 365 * 24 * time.Hour

// reading is a comparison of the clocks.
type reading struct {
	mono      time.Duration // since base
	wall      time.Duration // of the wall clock, since 1970
	suspended time.Duration
}

// latest is the latest reading. It saves most calls of the system: Go has its own clocks in 50 ns,
// and CLOCK_BOOTTIME in 350.
var latest atomic.Pointer[reading]

// A reading serves for freshFor, as long as the wall clock keeps its distance to the monotonic one
// within mostDrift. A suspension moves the wall clock, too, so the next call after it reads again.
// Only a step back of the wall clock by the length of the suspension, at once with it, could hide
// it, and no longer than freshFor.
const (
	freshFor  = 100 * time.Millisecond
	mostDrift = time.Millisecond
)

// serves reports whether the time of suspensions is that of r at the moment of now.
func (r *reading) serves(now reading) bool {
	passed := now.mono - r.mono
	drift := now.wall - r.wall - passed
	return passed >= 0 && passed < freshFor && drift.Abs() < mostDrift
}

// Now returns the moment now.
func Now() Instant {
	for tries := 1; ; tries++ {
		mono := time.Now()
		now := reading{mono: mono.Sub(base), wall: time.Duration(mono.UnixNano())}
		if r := latest.Load(); r != nil && r.serves(now) {
			return Instant{mono, r.suspended}
		}
		now.suspended = sinceBoot() - baseBoot - now.mono
		if now.suspended < 0 || now.suspended > mostSuspended {
			now.suspended = 0 // a bubble: its clock is decades away from base
		}
		// If the process is stopped between the readings, read again.
		if time.Since(mono) < leastSuspended/10 || tries == 10 {
			latest.Store(&now)
			return Instant{mono, now.suspended}
		}
	}
}

// Sub returns the time from the earlier moment to i: by CLOCK_BOOTTIME, or by the monotonic clock
// on systems without it and in a testing/synctest bubble.
func (i Instant) Sub(earlier Instant) time.Duration {
	by := i.mono.Sub(earlier.mono)
	if slept := i.suspended - earlier.suspended; slept >= leastSuspended {
		by += slept
	}
	return by
}

// IsZero reports whether i is no moment.
func (i Instant) IsZero() bool { return i.mono.IsZero() }

// Since returns the time since the moment.
func Since(earlier Instant) time.Duration { return Now().Sub(earlier) }

// Boot returns the time from the machine's boot to i, or 0 if the system does not provide it.
func (i Instant) Boot() time.Duration {
	if baseBoot == 0 {
		return 0
	}
	return baseBoot + i.Sub(Instant{mono: base})
}

// ID names this boot of the machine: moments with the same ID count from the same boot. It is "" if
// the system does not provide one.
func ID() string { return bootID() }
