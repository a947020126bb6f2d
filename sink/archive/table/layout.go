package table

import (
	"fmt"
	"time"
)

// Layout is the span of time that one folder of a table has.
type Layout string

// The layouts.
const (
	Minute Layout = "minute" // 2020/02/02/15/55
	Hour   Layout = "hour"   // 2020/02/02/15
	Day    Layout = "day"    // 2020/02/02
)

var formats = map[Layout]string{
	Minute: "2006/01/02/15/04", Hour: "2006/01/02/15", Day: "2006/01/02",
}

// ParseLayout reads minute, hour or day.
func ParseLayout(text string) (Layout, error) {
	if _, known := formats[Layout(text)]; !known {
		return "", fmt.Errorf("layout %q: want %s, %s or %s", text, Minute, Hour, Day)
	}
	return Layout(text), nil
}

// folder returns the folder of an arrival time.
func (l Layout) folder(arrival time.Time) string { return arrival.UTC().Format(formats[l]) }

// depth returns the number of levels of folders.
func (l Layout) depth() int { return map[Layout]int{Minute: 5, Hour: 4, Day: 3}[l] }
