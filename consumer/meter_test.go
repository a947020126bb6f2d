package consumer

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/lease"
)

// A holder measures its rate, and the rate at which its records had arrived, while it keeps up,
// catches up, falls behind and stops.
func TestMeasured(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000).UTC()
	const beat = 5 * time.Second
	for _, c := range []struct {
		what           string
		behind, step   time.Duration // at the beginning, and the change with each write
		bytes          int64         // of each write, 5 s apart
		rate, arriving int64
	}{
		{"at the tip", 0, 0, 5000, 1000, 1000},
		{"idle", 0, 0, 0, 0, 0},
		{"catching up, at ten times the speed", time.Hour, -45 * time.Second, 50_000, 10_000, 1000},
		{"falling behind, at half the speed", time.Minute, 2500 * time.Millisecond, 2500, 500, 1000},
	} {
		row, behind := lease.Lease{}, c.behind
		for n := range 40 {
			now := lease.Stats{
				At: start.Add(time.Duration(n) * beat), Behind: behind, Busy: 0.5,
			}
			row.Stats, row.ThroughputKBps = measured(row, now, c.bytes, beat, beat)
			behind += c.step
		}
		s := row.Stats
		if math.Abs(float64(s.Rate-c.rate)) > 1 || math.Abs(float64(s.Ingest-c.arriving)) > 20 ||
			math.Abs(row.ThroughputKBps-float64(c.rate)/1024) > 0.01 || math.Abs(s.Busy-0.5) > 0.001 {
			t.Errorf("%s: %+v, %f KB/s, want %d, %d", c.what, s, row.ThroughputKBps, c.rate, c.arriving)
		}
		// A stop leaves the known rate of arrival as it is.
		stuck := s
		stuck.At, stuck.Behind = s.At.Add(beat), s.Behind+beat
		got, _ := measured(row, stuck, 0, beat, beat)
		if got.Ingest != s.Ingest || got.Rate > s.Rate || c.rate > 0 && got.Rate == s.Rate {
			t.Errorf("%s, and then nothing: %+v after %+v", c.what, got, s)
		}
	}
	// The KCL's throughput forgets half with each renewal.
	row := lease.Lease{ThroughputKBps: 8, Stats: lease.Stats{At: start}}
	if _, got := measured(row, lease.Stats{At: start.Add(beat)}, 0, beat, beat); got != 4 {
		t.Errorf("8 became %v, want 4", got)
	}
}

// Calls that overlap count once.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var b busy
		want := func(d time.Duration) {
			t.Helper()
			if got := b.spent(); got != d {
				t.Errorf("%s, want %s", got, d)
			}
		}
		b.begin()
		<-time.After(time.Second)
		want(time.Second)
		b.begin()
		<-time.After(time.Second)
		b.end()
		<-time.After(time.Second)
		b.end()
		want(3 * time.Second)
		<-time.After(time.Minute)
		want(3 * time.Second)
		b.begin()
		<-time.After(time.Second)
		want(4 * time.Second)
		b.end()
		var none *busy // of a parent that is read under its child's lease
		none.begin()
		none.end()
	})
}
