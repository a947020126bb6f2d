package wire

import (
	"math"
	"testing"
)

// TestScalars reads each kind of value in both formats: booleans, numbers of every width, and
// times, which are seconds in JSON, and in CBOR milliseconds or, with a fraction, seconds.
func TestScalars(t *testing.T) {
	document := func(format Format, body string) Document {
		t.Helper()
		d, err := NewDocument(format, []byte(body))
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		return d
	}
	for body, want := range map[string]bool{"true": true, " false ": false} {
		if d := document(JSON, body); d.Kind() != BooleanValue || d.Boolean() != want {
			t.Errorf("JSON %s is not %v", body, want)
		}
	}
	for body, want := range map[string]bool{"\xf5": true, "\xf4": false} {
		if d := document(CBOR, body); d.Kind() != BooleanValue || d.Boolean() != want {
			t.Errorf("CBOR %x is not %v", body, want)
		}
	}
	for _, c := range []struct {
		format Format
		body   string
		number float64
		ms     int64
		refuse bool // as a time
	}{
		{JSON, "1.5", 1.5, 1500, false},
		{JSON, "-0.10e3", -100, -100_000, false},
		{JSON, "1e400", math.Inf(1), 0, true},
		{JSON, "1e12", 1e12, 0, true},
		{CBOR, "\x0a", 10, 10, false},
		{CBOR, "\x1b\x00\x00\x01\x9b\x00\x00\x00\x00", 0x19b00000000, 0x19b00000000, false},
		{CBOR, "\x38\x63", -100, -100, false},
		{CBOR, "\xf9\x3e\x00", 1.5, 1500, false},                           // a half
		{CBOR, "\xf9\x00\x01", math.Ldexp(1, -24), 0, false},               // the least half
		{CBOR, "\xf9\xfc\x00", math.Inf(-1), 0, true},                      // an infinite half
		{CBOR, "\xfa\x3f\xc0\x00\x00", 1.5, 1500, false},                   // a single
		{CBOR, "\xfb\xbf\xf8\x00\x00\x00\x00\x00\x00", -1.5, -1500, false}, // a double
	} {
		d := document(c.format, c.body)
		if d.Kind() != NumberValue {
			t.Errorf("%q has kind %v", c.body, d.Kind())
		}
		if got, err := d.Number(); err != nil || got != c.number {
			t.Errorf("%q: %v, %v, want %v", c.body, got, err, c.number)
		}
		got, err := document(c.format, c.body).Time()
		if (err != nil) != c.refuse || err == nil && got != c.ms {
			t.Errorf("%q as a time: %d, %v, want %d", c.body, got, err, c.ms)
		}
	}
	if _, err := document(CBOR, "\xf9\x7e\x00").Number(); err == nil {
		t.Error("NaN is a number")
	}
}
