package bootclock_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
)

func TestNow(t *testing.T) {
	if !(bootclock.Instant{}).IsZero() || bootclock.Now().IsZero() {
		t.Error("IsZero")
	}
	first := bootclock.Now()
	second := bootclock.Now()
	if by := second.Sub(first); by < 0 || by > time.Minute {
		t.Errorf("two readings are %v apart", by)
	}
	if runtime.GOOS != "linux" {
		return
	}
	if len(bootclock.ID()) != 36 || first.Boot() <= 0 || second.Boot() < first.Boot() {
		t.Errorf("boot %q, read %v and then %v", bootclock.ID(), first.Boot(), second.Boot())
	}
}

func TestVirtualTimeCounts(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		start := bootclock.Now()
		time.Sleep(time.Hour)
		if by := bootclock.Since(start); by < time.Hour || by > time.Hour+time.Minute {
			t.Errorf("%v instead of an hour", by)
		}
	})
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		bootclock.Now()
	}
}
