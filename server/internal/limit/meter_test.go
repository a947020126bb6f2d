package limit

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var perSecond = Rate{5, time.Second}

func TestMeterTake(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  Rate
		steps []step
	}{
		{"a second's worth at once, then evenly", perSecond, []step{
			{0, 5, true},
			{0, 1, false},
			{199, 1, false},
			{200, 1, true},
			{200, 1, false},
			{600, 2, true},
			{601, 1, false},
		}},
		{"a quiet second fills it, and no more than that", perSecond, []step{
			{0, 5, true}, {9000, 5, true}, {9000, 1, false},
		}},
		{"what is too large for any second fits into a quiet one", perSecond, []step{
			{0, 12, true},
			{1000, 1, false},
			{1599, 1, false},
			{1600, 1, true},
			{1700, 12, false},
			{2600, 12, true},
		}},
		{"a rolling day", Rate{2, day}, []step{
			{0, 1, true},
			{1000, 1, true},
			{1001, 1, false},
			{86_399_999, 1, false},
			{86_400_000, 1, true},
			{86_400_999, 1, false},
			{86_401_000, 1, true},
		}},
	} {
		var m Meter
		for i, s := range c.steps {
			if got := m.Take(c.rate, s.at, s.n); got != s.want {
				t.Errorf("%s: step %d: %d at %d: %v", c.name, i, s.n, s.at, got)
			}
		}
	}
}

type step struct {
	at, n int64
	want  bool
}

func TestMeterReturn(t *testing.T) {
	var m Meter
	rate := Rate{1, day}
	if !m.Take(rate, 1, 1) || m.Take(rate, 2, 1) {
		t.Fatal("a day's rate of 1")
	}
	m.Return(rate)
	m.Return(rate) // of nothing
	if !m.Take(rate, 3, 1) {
		t.Error("what was given back cannot be taken")
	}
	m = Meter{}
	m.Add(perSecond, 1, 5)
	m.Return(perSecond)
	if m.Take(perSecond, 1, 1) {
		t.Error("a second's rate was given back")
	}
}

// Ten MiB at 2 MiB a second close the meter for five seconds: AWS, "GetRecords".
func TestMeterOwe(t *testing.T) {
	rate := Rate{2 << 20, time.Second}
	var m Meter
	m.Owe(rate, 1000, 1<<20)
	if !m.Open(rate, 1000) {
		t.Fatal("closed after half a second's worth")
	}
	m = Meter{}
	m.Owe(rate, 1000, 10<<20)
	for at, open := range map[int64]bool{5999: false, 6000: true} {
		other := m
		if other.Open(rate, at) != open {
			t.Errorf("open at %d: %v", at, !open)
		}
	}
}

func TestMeterPause(t *testing.T) {
	rate := Rate{1000, time.Second}
	var m Meter
	for i, s := range []struct{ at, n, want int64 }{
		{0, 1000, 0}, {0, 500, 500}, {500, 1000, 1000}, {2500, 3000, 2000}, {4500, 1, 1}, {4502, 1, 0},
	} {
		if got := m.Pause(rate, s.at, s.n); got != s.want {
			t.Errorf("step %d: after %d at %d a pause of %d ms, want %d", i, s.n, s.at, got, s.want)
		}
	}
}

// Over any time no more is taken than the rate allows plus one second's worth, and a caller that
// asks often gets all of that.
func TestMeterKeepsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate{rapid.Int64Range(1, 3000).Draw(t, "rate"), time.Second}
		var m Meter
		now, taken := int64(1_000_000), int64(0)
		start := now
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			now += rapid.Int64Range(0, 300).Draw(t, "pause")
			n := rapid.Int64Range(1, rate.Value).Draw(t, "n")
			if m.Take(rate, now, n) {
				taken += n
			} else if left := rate.Value*milli - m.used; left >= n*milli {
				t.Fatalf("%d are refused with %d left", n, left/milli)
			}
			if allowed := rate.Value + (now-start)*rate.Value/1000; taken > allowed {
				t.Fatalf("%d were taken within %d ms, %d are allowed", taken, now-start, allowed)
			}
		}
		if m.Idle(rate, now) != (m.used == 0) || !m.Idle(rate, now+3_600_000) {
			t.Fatal("Idle is wrong")
		}
	})
}
