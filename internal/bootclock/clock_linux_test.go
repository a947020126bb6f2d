package bootclock

import "testing"

func TestShift(t *testing.T) {
	for offsets, want := range map[string]string{
		"":                                       "",
		"monotonic  0  0\nboottime  0  0\n":      "",
		"monotonic  5  0\nboottime  100000  7\n": "+100000.7",
		"monotonic  0  0\nboottime  -3  0\n":     "+-3.0",
	} {
		if got := shift(offsets); got != want {
			t.Errorf("shift(%q) = %q, want %q", offsets, got, want)
		}
	}
}
