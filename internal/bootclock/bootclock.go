// Package bootclock measures how much time has gone by, sleep and stops of the process included.
//
// Neither of Go's two clocks will do where a promise hangs on a duration: the wall clock is stepped
// by people and by NTP, and the monotonic one does not count while the machine is suspended. Linux
// has a clock that only ever advances and counts suspension too, CLOCK_BOOTTIME (clock_gettime(2)).
//
// Here it is the monotonic clock of Go and the time that the machine has been suspended for. So it
// is virtual in a testing/synctest bubble, and the time that a test takes does not count there.
package bootclock

import "time"

// Instant is a moment. Instants of one process compare; those of different processes do by Boot, as
// long as ID is the same. The zero value is no moment.
type Instant struct {
	mono      time.Time
	suspended time.Duration
}

// The moment of the process from which suspensions and Instant.Boot count.
var base, baseBoot = time.Now(), sinceBoot()

// leastSuspended is the shortest suspension that counts. A shorter one is taken for the time
// between the readings of two clocks.
const leastSuspended = 10 * time.Millisecond

const mostSuspended = 10 * 365 * 24 * time.Hour

// Now returns the moment now.
func Now() (now Instant) {
	for range 10 { // a process that is stopped between the readings reads again
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

// Sub returns how much time went by from the earlier moment to i: by CLOCK_BOOTTIME, or by the
// monotonic clock on systems without it and in a testing/synctest bubble.
func (i Instant) Sub(earlier Instant) time.Duration {
	by := i.mono.Sub(earlier.mono)
	if slept := i.suspended - earlier.suspended; slept >= leastSuspended {
		by += slept
	}
	return by
}

// IsZero reports whether i is no moment.
func (i Instant) IsZero() bool { return i.mono.IsZero() }

// Since returns how much time has gone by since the moment.
func Since(earlier Instant) time.Duration { return Now().Sub(earlier) }

// Boot returns the time from the machine's boot to i, or 0 where the system does not say.
func (i Instant) Boot() time.Duration {
	if baseBoot == 0 {
		return 0
	}
	return baseBoot + i.Sub(Instant{mono: base})
}

// ID names this boot of the machine: moments with the same ID count from the same boot. It is ""
// where the system does not say.
func ID() string { return bootID() }
