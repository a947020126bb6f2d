package proxy_test

import (
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soak returns the factor for the size of random tests: RUNNEL_SOAK, or 1.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}
