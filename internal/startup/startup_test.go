package startup

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestCollections checks when collections come with a small heap, with a large one, and with a
// small one again.
func TestCollections(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("the environment sets GOGC, which stays")
	}
	const large = 48 << 20
	collect(t, "at the start", leastGoal, leastGoal*5/4)
	func() {
		data := make([]byte, large)
		collect(t, "with much data", large*2, large*3)
		runtime.KeepAlive(data)
	}()
	collect(t, "without it", leastGoal, leastGoal*5/4)
	end, deep := make(chan struct{}), sync.WaitGroup{}
	for range 1000 {
		deep.Add(1)
		go recurse(200, func() { deep.Done(); <-end })
	}
	deep.Wait()
	collect(t, "with large stacks", leastGoal, large*10)
	close(end)
}

// recurse calls f with a stack of so many KiB.
func recurse(kib int, f func()) byte {
	var frame [1 << 10]byte
	if kib == 0 {
		f()
		return frame[0]
	}
	return recurse(kib-1, f) + frame[kib]
}

// collect collects until the goal of the next collection is from low to high, in bytes.
func collect(t *testing.T, when string, low, high uint64) {
	t.Helper()
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		runtime.GC()
		metrics.Read(goal)
		if at := goal[0].Value.Uint64(); at >= low && at <= high {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%s the next collection comes at %d bytes, want %d to %d", when, at, low, high)
		}
	}
}

// TestSettingOfTheEnvironment checks that the process leaves a GOGC of the environment alone.
func TestSettingOfTheEnvironment(t *testing.T) {
	if os.Getenv("STARTUP_TEST_PRINT") != "" {
		runtime.GC()
		time.Sleep(100 * time.Millisecond) // a cleanup has a goroutine of its own
		percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(percent)
		fmt.Println("GOGC is", percent[0].Value.Uint64())
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSettingOfTheEnvironment$", "-test.v")
	cmd.Env = append(os.Environ(), "STARTUP_TEST_PRINT=1", "GOGC=77")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "GOGC is 77\n") {
		t.Errorf("want a GOGC of 77: %s", out)
	}
}
