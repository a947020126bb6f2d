package shardmap_test

import (
	"testing"
	"time"

	"github.com/runnel-stream/runnel/internal/shardmap"
)

// A shorter period is worth a question only if it can end between two records.
func TestShortened(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_123)
	ago := func(hours, minutes int) time.Time {
		return now.Add(-time.Duration(hours)*time.Hour - time.Duration(minutes)*time.Minute)
	}
	for _, c := range []struct {
		retention int
		from, to  time.Time
		want      bool
	}{
		{72, ago(60, 30), ago(60, 20), false},
		{72, ago(60, 30), ago(59, 50), true},
		{72, ago(60, 30), now, true},
		{72, ago(24, 0), now, true},
		{72, ago(23, 50), now, false},
		{72, ago(60, 0), ago(60, 0), true}, // the clocks differ a little
		{24, ago(40, 0), now, false},       // there is no shorter one
		{0, ago(40, 0), now, false},
		{48, ago(60, 0), ago(48, 10), false},
		{48, ago(60, 0), ago(46, 50), true},
		{72, time.Time{}, now, true},
	} {
		h := shardmap.Horizon{Retention: time.Duration(c.retention) * time.Hour}
		if got := h.Shortened(c.from, c.to, now); got != c.want {
			t.Errorf("%d hours, from %s to %s before: %v", c.retention, now.Sub(c.from),
				now.Sub(c.to), got)
		}
	}
}
