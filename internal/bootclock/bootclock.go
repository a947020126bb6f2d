// Package bootclock measures elapsed time, including sleep and stops of the process.
//
// Neither of Go's two clocks is enough for a promise about a duration: people and NTP step the wall
// clock, and the monotonic one does not count while the machine is suspended. Linux has a clock
// that only ever advances and counts suspension too, CLOCK_BOOTTIME (clock_gettime(2)).
//
// This package adds the time of suspensions to Go's monotonic clock. So its time is virtual in a
// testing/synctest bubble, and the real duration of a test does not count there.
package bootclock

import "time"

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

// Now returns the moment now.
func Now() (now Instant) {
	for range 10 { // if the process is stopped between the readings, read again
		now.mono = time.Now()
		boot := sinceBoot()
		now.suspended = boot - baseBoot - now.mono.Sub(base)
		if now.suspended < 0 || now.suspended > mostSuspended {
			now.suspended = 0 // a bubble: its clock is decades away from base
		}
		if time.Since(now.mono) < leastSuspended/10 {
			break
		}
	}
	return now
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
