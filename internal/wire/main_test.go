package wire

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// TestMain multiplies the random tests by RUNNEL_SOAK. They print the seed that fails.
func TestMain(m *testing.M) {
	if soak, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && soak > 0 {
		if err := flag.Set("rapid.checks", strconv.Itoa(100*soak)); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
