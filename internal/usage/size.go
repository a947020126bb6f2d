package usage

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes: "1048576", "64MiB", "5MB", "256k".
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "BbKkMmGgi ")
	n, err := strconv.ParseInt(digits, 10, 64)
	unit := strings.ToLower(strings.TrimSpace(text[len(digits):]))
	scale, known := map[string]int64{
		"": 1, "b": 1, "k": 1 << 10, "kib": 1 << 10, "kb": 1e3, "m": 1 << 20, "mib": 1 << 20,
		"mb": 1e6, "g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	}[unit]
	if err != nil || !known || n < 1 || n > (1<<62)/scale {
		return 0, fmt.Errorf("%q is not a size: want bytes, as 1048576, 256KiB or 64MiB", text)
	}
	return n * scale, nil
}
