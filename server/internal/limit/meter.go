package limit

import (
	"slices"
	"time"
)

// Rate is so much of something in a window of time: a second, or longer.
type Rate struct {
	Value  int64
	Window time.Duration
}

// Meter counts against one rate, in one place: an account, a stream, a shard. The zero value
// has counted nothing. Times are in ms and must not step back; the caller locks.
//
// A rate for a second is a bucket of one second's worth, that fills evenly: after a quiet
// second the whole of it may be used at once, and over any longer time no more than the rate
// and one second's worth. AWS promises "per second" and not how it counts; this is the
// simplest that keeps the promise over time. A longer window is a rolling one, as AWS says of
// its limits for 24 hours: every use is remembered until the window has passed it.
type Meter struct {
	used  int64   // in thousandths
	at    int64   // when used was that
	times []int64 // of a longer window: when it was used
}

const milli = 1000

// drain lets the time since the last use pass.
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

// Fits reports whether n more may be used now. What is larger than a whole second's worth fits
// if nothing of it has been used: AWS has "burst capacity" for large records.
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

// Return takes back what was added last, one of a longer window.
func (m *Meter) Return(r Rate) {
	if n := len(m.times); r.Window > time.Second && n > 0 {
		m.times = m.times[:n-1]
	}
}

// Open reports whether nothing is owed, and Owe counts n after the fact. If n is more than
// fits, all of it is owed: with 2 MiB a second, 10 MiB close the meter for five seconds, as
// AWS says of GetRecords.
func (m *Meter) Open(r Rate, now int64) bool {
	m.drain(r, now)
	return m.used <= r.Value*milli
}

// Owe is described with Open.
func (m *Meter) Owe(r Rate, now, n int64) {
	m.drain(r, now)
	if m.used+n*milli > r.Value*milli {
		m.used = r.Value * milli
	}
	m.used += n * milli
}

// Pause counts n as used and returns how long, in ms, to use nothing more, so that over time
// all that is used keeps to the rate.
func (m *Meter) Pause(r Rate, now, n int64) int64 {
	m.drain(r, now)
	m.used += n * milli
	over := max(m.used-r.Value*milli, 0)
	return (over + r.Value - 1) / r.Value
}

// Idle reports whether the meter is as good as a new one.
func (m *Meter) Idle(r Rate, now int64) bool {
	m.drain(r, now)
	return m.used == 0 && len(m.times) == 0
}
