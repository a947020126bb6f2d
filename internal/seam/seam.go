// Package seam holds two settings that tests change for a whole process: the horizon H of units and
// the wall clock. It also holds ErrKilled, with which a test ends a worker without a flush, a
// checkpoint or a release. Only tests change H and the clock, by FromEnv at the start of their
// process or by SetH; a test in the repository's root checks that no other file calls these.
//
// Tests that need neither a shorter H nor a wrong clock run in virtual time instead.
package seam

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// The variables that FromEnv reads.
const (
	// EnvH is a duration, as "6s", that replaces DefaultH.
	EnvH = "RUNNEL_TEST_H"
	// EnvClock names a file with a duration, as "-15m", that Wall adds to the system's clock. Each
	// call of Wall reads the file again, so that a test can step the clock of a running process.
	// After "25h passed" the clock was not stepped: Passed, too, returns that time.
	EnvClock = "RUNNEL_TEST_CLOCK"
)

// DefaultH is H everywhere but in tests: the lifetime of a request's signature (AWS, "Elements of
// an AWS API request signature": five minutes).
const DefaultH = 5 * time.Minute

var (
	h         atomic.Int64 // 0: DefaultH
	clockFile atomic.Pointer[string]
)

// ErrKilled is the cause of a context that ends a consumer.Worker as a crash would: the worker
// cancels its handlers at once, and flushes, checkpoints and releases nothing. Run still waits for
// its goroutines, and returns ErrKilled.
var ErrKilled = errors.New("the worker was killed")

// H returns the time after its first send during which a unit may be sent again.
func H() time.Duration {
	if short := h.Load(); short != 0 {
		return time.Duration(short)
	}
	return DefaultH
}

// test is the part of testing.TB that SetH needs.
type test interface {
	Helper()
	Cleanup(func())
}

// SetH replaces H in the process until the end of a test, which must not run in parallel with
// others that rely on H.
func SetH(t test, short time.Duration) {
	t.Helper()
	before := h.Swap(int64(short))
	t.Cleanup(func() { h.Store(before) })
}

// Wall returns the time by the wall clock, without a monotonic reading.
func Wall() time.Time {
	now := time.Now().Round(0)
	if name := clockFile.Load(); name != nil {
		by, _ := offset(*name)
		return now.Add(by)
	}
	return now
}

// Passed returns the time that CLOCK_BOOTTIME has to count in addition, so that time seems to pass.
func Passed() time.Duration {
	if name := clockFile.Load(); name != nil {
		if by, passed := offset(*name); passed {
			return by
		}
	}
	return 0
}

// offset reads a clock file. A file that is missing, empty or not a duration means no offset: a
// test may be writing it at that moment.
func offset(name string) (by time.Duration, passed bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	duration, passed := strings.CutSuffix(strings.TrimSpace(string(text)), " passed")
	if by, err = time.ParseDuration(duration); err != nil {
		return 0, false
	}
	return by, passed
}

// FromEnv takes EnvH and EnvClock over, for the rest of the process. Only the TestMain of a package
// calls it, if the package's tests run commands as processes.
func FromEnv() error {
	if text := os.Getenv(EnvH); text != "" {
		short, err := time.ParseDuration(text)
		if err != nil || short <= 0 || short > DefaultH {
			return fmt.Errorf("%s=%q: want a duration above 0 and up to %v", EnvH, text, DefaultH)
		}
		h.Store(int64(short))
	}
	if name := os.Getenv(EnvClock); name != "" {
		clockFile.Store(&name)
	}
	return nil
}
