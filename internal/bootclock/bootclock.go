// Package bootclock measures how much time has gone by, sleep and stops of the process included.
//
// Neither of Go's two clocks will do where a promise hangs on a duration: the wall clock is stepped
// by people and by NTP, and the monotonic one does not count while the machine is suspended. Linux
// has a clock that only ever advances and counts suspension too, CLOCK_BOOTTIME (clock_gettime(2)).
package bootclock

import "time"

// Instant is a moment. Instants of one process compare; those of different processes do by Boot, as
// long as ID is the same. The zero value is no moment.
type Instant struct {
	mono time.Time
	boot time.Duration
}

// Now returns the moment now.
func Now() Instant { return Instant{mono: time.Now(), boot: sinceBoot()} }

// Sub returns how much time went by from the earlier moment to i: by CLOCK_BOOTTIME, or by the
// monotonic clock where that says more, as in a testing/synctest bubble and on systems without
// CLOCK_BOOTTIME.
func (i Instant) Sub(earlier Instant) time.Duration {
	return max(i.mono.Sub(earlier.mono), i.boot-earlier.boot)
}

// IsZero reports whether i is no moment.
func (i Instant) IsZero() bool { return i.mono.IsZero() }

// Since returns how much time has gone by since the moment.
func Since(earlier Instant) time.Duration { return Now().Sub(earlier) }

// Boot returns the time from the machine's boot to i, or 0 where the system does not say.
func (i Instant) Boot() time.Duration { return i.boot }

// ID names this boot of the machine: moments with the same ID count from the same boot. It is ""
// where the system does not say.
func ID() string { return bootID() }
