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
		now := bootclock.Now()
		if by := now.Sub(start); by != time.Hour {
			t.Errorf("%v instead of an hour", by)
		}
		if by := now.Boot() - start.Boot(); runtime.GOOS == "linux" && by != time.Hour {
			t.Errorf("%v by Boot instead of an hour", by)
		}
	})
}

// The time that a test's own work takes does not count in a bubble.
func TestRealTimeDoesNotCountInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := bootclock.Now()
		for sum, i := uint64(0), uint64(0); i < 100_000_000; i++ { // some 50 ms
			sum += i
			runtime.KeepAlive(sum)
		}
		if by := bootclock.Since(start); by != 0 {
			t.Errorf("%v have gone by", by)
		}
	})
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		bootclock.Now()
	}
}
