package limit

import (
	"slices"
	"time"
)

// Rate is an amount per window of time: a second, or longer.
type Rate struct {
	Value  int64
	Window time.Duration
}

// Meter counts against one rate for one account, stream or shard. The zero value is unused. Times
// are in ms and must not step back; the caller locks.
//
// A rate per second is a bucket that holds one second's amount and fills evenly. After a quiet
// second a caller may use the whole amount at once; over a longer time usage stays below the rate
// plus one second's amount. AWS promises "per second" without defining the count; this is the
// simplest meter that keeps the promise over time. A longer window is a rolling one, as AWS
// documents for its limits per 24 hours: the meter remembers every use until the window has
// passed.
type Meter struct {
	used  int64   // in thousandths
	at    int64   // the time of used
	times []int64 // the times of use in a longer window
}

const milli = 1000

// drain applies the time since the last use.
func (m *Meter) drain(r Rate, now int64) {
	if r.Window > time.Second {
		horizon := now - r.Window.Milliseconds()
		passed, _ := slices.BinarySearch(m.times, horizon+1)
		m.times = slices.Delete(m.times, 0, passed)
		return
	}
	elapsed := max(now-m.at, 0)
	if elapsed > m.used/r.Value {
		m.used = 0
	} else {
		m.used -= elapsed * r.Value
	}
	m.at = max(now, m.at)
}

// Fits reports whether n more may be used now. An amount above one second's worth fits if the
// bucket is full: AWS has "burst capacity" for large records.
func (m *Meter) Fits(r Rate, now, n int64) bool {
	m.drain(r, now)
	if r.Window > time.Second {
		return int64(len(m.times))+n <= r.Value
	}
	return m.used == 0 || m.used+n*milli <= r.Value*milli
}

// Add counts n as used, whether it fits or not.
func (m *Meter) Add(r Rate, now, n int64) {
	m.drain(r, now)
	if r.Window > time.Second {
		for range n {
			m.times = append(m.times, now)
		}
		return
	}
	m.used += n * milli
}

// Take counts n as used if it fits.
func (m *Meter) Take(r Rate, now, n int64) bool {
	fits := m.Fits(r, now, n)
	if fits {
		m.Add(r, now, n)
	}
	return fits
}

// Return undoes the latest Add of a longer window.
func (m *Meter) Return(r Rate) {
	if n := len(m.times); r.Window > time.Second && n > 0 {
		m.times = m.times[:n-1]
	}
}

// Open reports whether no amount is owed. Owe counts n afterwards. If n exceeds the free amount,
// the excess is owed: with 2 MiB a second, 10 MiB close the meter for five seconds, as AWS
// documents for GetRecords.
func (m *Meter) Open(r Rate, now int64) bool {
	m.drain(r, now)
	return m.used <= r.Value*milli
}

// Owe counts n: see Open.
func (m *Meter) Owe(r Rate, now, n int64) {
	m.drain(r, now)
	if m.used+n*milli > r.Value*milli {
		m.used = r.Value * milli
	}
	m.used += n * milli
}

// Pause counts n as used and returns the time in ms to wait before the next use, so that over
// time usage keeps to the rate.
func (m *Meter) Pause(r Rate, now, n int64) int64 {
	m.drain(r, now)
	m.used += n * milli
	over := max(m.used-r.Value*milli, 0)
	return (over + r.Value - 1) / r.Value
}

// Idle reports whether the meter is in the state of a new one.
func (m *Meter) Idle(r Rate, now int64) bool {
	m.drain(r, now)
	return m.used == 0 && len(m.times) == 0
}
