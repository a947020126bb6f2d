package lease

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Stats is what a holder measured when it wrote a row (runnelStats), for people and tools. Nothing
// is decided by it.
type Stats struct {
	At     time.Time     // the time of the write, by the holder's clock, in milliseconds
	Behind time.Duration // the distance to the tip of the stream, in milliseconds
	Rate   int64         // bytes of data a second since the write before
}

// String returns the attribute's value: the three as numbers.
func (s Stats) String() string {
	return fmt.Sprintf("%d %d %d", s.At.UnixMilli(), s.Behind.Milliseconds(), s.Rate)
}

// parseStats reads an attribute; the zero Stats for a value of another shape.
func parseStats(value string) Stats {
	var numbers [3]int64
	parts := strings.Split(value, " ")
	if len(parts) != len(numbers) {
		return Stats{}
	}
	for i, part := range parts {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 0 || n > 1<<50 {
			return Stats{}
		}
		numbers[i] = n
	}
	const year = 366 * 24 * time.Hour // the longest retention period
	return Stats{
		At:     time.UnixMilli(numbers[0]).UTC(),
		Behind: time.Duration(min(numbers[1], year.Milliseconds())) * time.Millisecond,
		Rate:   numbers[2],
	}
}
