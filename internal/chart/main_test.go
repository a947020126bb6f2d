package chart_test

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// TestMain multiplies the checks of rapid by RUNNEL_SOAK, 1 if it is not set. They print the
// seed that fails.
func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && n > 0 {
		if err := flag.Set("rapid.checks", strconv.Itoa(100*n)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
