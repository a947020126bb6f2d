package startup

import "testing"

// TestConstants has the lines of /proc/PID/maps that are released, and those that must not be.
func TestConstants(t *testing.T) {
	for _, c := range []struct {
		line       string
		start, end uintptr
	}{
		{"00400000-01b62000 r-xp 00000000 fe:00 42     /bin/runnel", 0x400000, 0x1b62000},
		{"01b62000-03211000 r--p 01762000 fe:00 42     /bin/runnel", 0x1b62000, 0x3211000},
		{"03211000-032d7000 rw-p 02e11000 fe:00 42     /bin/runnel", 0, 0},
		{"00400000-01b62000 r-xp 00000000 fe:00 42     /usr/bin/runnel", 0, 0},
		{"00400000-01b62000 r-xp 00000000 fe:00 42     /bin/runnel (deleted)", 0, 0},
		{"c000000000-c000400000 rw-p 00000000 00:00 0", 0, 0},
		{"7fff55659000-7fff5567a000 rw-p 00000000 00:00 0     [stack]", 0, 0},
	} {
		if start, end := constants(c.line, "/bin/runnel"); start != c.start || end != c.end {
			t.Errorf("%s: %x to %x, want %x to %x", c.line, start, end, c.start, c.end)
		}
	}
}
