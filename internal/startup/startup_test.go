package startup

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// TestPutOffCollection checks that the first collection ends the delay.
func TestPutOffCollection(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(77)
	defer debug.SetGCPercent(before)
	var c collector
	c.putOffCollection()
	if got := percent(); got != firstCollection {
		t.Fatalf("GOGC is %d at first, want %d", got, firstCollection)
	}
	c.putOffCollection()
	runtime.GC()
	for deadline := time.Now().Add(10 * time.Second); percent() != 77; {
		if time.Now().After(deadline) {
			t.Fatalf("GOGC is %d after a collection, want 77", percent())
		}
		time.Sleep(time.Millisecond) // the cleanup has a goroutine of its own
	}
}

// TestPutOffAlways checks that a setting of the environment stays.
func TestPutOffAlways(t *testing.T) {
	t.Setenv("GOGC", "100")
	before := percent()
	var c collector
	if c.putOffCollection(); percent() != before {
		t.Errorf("GOGC is %d, want %d", percent(), before)
	}
}

// percent returns the setting of GOGC.
func percent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
