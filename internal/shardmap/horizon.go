package shardmap

import "time"

// Horizon is the age at which a stream removes records. The stream removes the oldest records
// first, and none that is younger than the retention period.
type Horizon struct {
	Created time.Time // of the stream: no record is older
	// Retention is the period; 0 means the period of a new stream, which is the shortest possible
	// one.
	Retention time.Duration
}

const (
	// usualRetention is a new stream's period (AWS, "IncreaseStreamRetentionPeriod").
	usualRetention = 24 * time.Hour
	// horizonMargin covers the inexactness of the clocks: a Date header has whole seconds.
	horizonMargin = time.Minute
)

func (h Horizon) age() time.Duration {
	if h.Retention == 0 {
		return usualRetention - horizonMargin
	}
	return h.Retention - horizonMargin
}

// Young reports whether the stream is too young to have removed anything by now.
func (h Horizon) Young(now time.Time) bool { return now.Sub(h.Created) < h.age() }

// Passed reports whether the stream can have removed, by now, a record that arrived after at.
func (h Horizon) Passed(at, now time.Time) bool { return !h.Young(now) && now.Sub(at) >= h.age() }

// Shortened reports whether a period that is shorter than the known one can have removed, by now, a
// record that arrived between two times. Periods are whole hours. So a reader that is far behind,
// and reads one page after another, seldom has to ask for the period.
func (h Horizon) Shortened(from, to, now time.Time) bool {
	known := h.Retention
	if known == 0 {
		known = usualRetention
	}
	shortest := (now.Sub(to) - horizonMargin + time.Hour - 1).Truncate(time.Hour)
	shortest = max(shortest, usualRetention) // AWS, "DecreaseStreamRetentionPeriod"
	return shortest < known && now.Sub(from) >= shortest-horizonMargin
}
