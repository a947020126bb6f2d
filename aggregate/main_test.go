package aggregate_test

import (
	"crypto/md5"
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/runnel-stream/runnel/aggregate"
)

// soak multiplies the size of the random suites: RUNNEL_SOAK, 1 if it is not set.
func soak() int {
	if n, err := strconv.Atoi(os.Getenv("RUNNEL_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

// TestMain multiplies the checks of rapid too. They print the seed that fails.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", strconv.Itoa(100*soak())); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// wrap makes an aggregate of a message, with the KPL's magic number and MD5.
func wrap(message string) []byte {
	sum := md5.Sum([]byte(message))
	return []byte("\xf3\x89\x9a\xc2" + message + string(sum[:]))
}

// lengthed is a field with a length, for messages made by hand. Everything is below 128.
func lengthed(tag byte, value string) string {
	if len(value) > 127 {
		panic("too long for a test")
	}
	return string([]byte{tag, byte(len(value))}) + value
}

// add adds records and fails the test on an error.
func add(t testing.TB, e *aggregate.Encoder, records ...aggregate.Record) {
	t.Helper()
	for _, r := range records {
		if err := e.Add(r); err != nil {
			t.Fatal(err)
		}
	}
}
