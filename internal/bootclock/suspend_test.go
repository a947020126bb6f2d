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
