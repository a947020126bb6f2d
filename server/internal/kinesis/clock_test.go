package kinesis

import (
	"log/slog"
	"testing"
	"time"

	"github.com/runnel-stream/runnel/server/internal/serverclock"
)

func TestClockNeverStepsBack(t *testing.T) {
	ms := int64(5000)
	c := clock{serverclock.New(serverclock.Config{
		Wall:   func() time.Time { return time.UnixMilli(ms) },
		Logger: slog.New(slog.DiscardHandler),
	})}
	for _, step := range []struct{ system, floor, want int64 }{
		{5000, 0, 5000}, {4000, 0, 5000}, {6000, 0, 6000}, {6000, 9000, 9000}, {7000, 8000, 9000},
	} {
		ms = step.system
		c.notBefore(step.floor)
		if got := c.read().Stamp; got != step.want {
			t.Errorf("at %d, not before %d, the clock reads %d, want %d",
				step.system, step.floor, got, step.want)
		}
	}
}
