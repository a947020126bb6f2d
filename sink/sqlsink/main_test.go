package sqlsink_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run at a time than there are processors: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
