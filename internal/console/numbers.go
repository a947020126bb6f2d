package console

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Bar draws done of total as a bar of the given width.
func Bar(done, total int64, width int) string {
	filled := 0
	if total > 0 {
		filled = int(min(done, total) * int64(width) / total)
	}
	return strings.Repeat("━", filled) + strings.Repeat("─", width-filled)
}

// Thousands writes 1234567 as 1,234,567.
func Thousands[N int | int64 | uint64](n N) string {
	digits := fmt.Sprint(n)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// Rate is n a second.
func Rate[N int | int64 | uint64](n N, took time.Duration) int64 {
	return int64(float64(n) / max(took.Seconds(), 1e-3))
}

// Bytes formats a number of bytes, which need not be whole.
func Bytes(n float64) string {
	switch {
	case n < 1023.95: // and not 1024.0
		return Few(n) + " B"
	case n < 1023.95*(1<<10):
		return fmt.Sprintf("%.1f KiB", n/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", n/(1<<20))
	}
}

// Few formats a number below about 1,000.
func Few(n float64) string {
	switch {
	case n == math.Trunc(n):
		return fmt.Sprintf("%.0f", n)
	case n < 0.095:
		return fmt.Sprintf("%.1g", n)
	default:
		return fmt.Sprintf("%.1f", n)
	}
}

// MiB formats a number of bytes in MiB.
func MiB(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
