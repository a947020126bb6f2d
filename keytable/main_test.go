package keytable

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// soak multiplies the size of the random suites: RUNNEL_SOAK, 1 if it is not set.
var soak = 1

// TestMain multiplies the checks of rapid by it too. They print the seed that fails.
func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && n > 0 {
		soak = n
		if err := flag.Set("rapid.checks", strconv.Itoa(100*n)); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
