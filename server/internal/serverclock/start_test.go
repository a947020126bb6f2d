package serverclock

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A start logs a difference once, with what the server's clock does about it, whether the clock
// stepped in this life or before.
func TestStartsLogTheDifference(t *testing.T) {
	const ahead, behind, accepted = "follows it if that lasts ten minutes", "goes on at half speed",
		"since --accept-clock says that it is right"
	for _, c := range []struct {
		by     time.Duration
		before bool // the step comes in the life before
		accept bool
		want   string
	}{
		{2 * time.Hour, true, false, ahead},
		{2 * time.Hour, false, false, ahead},
		{2 * time.Hour, true, true, accepted},
		{2 * time.Hour, false, true, accepted},
		{-2 * time.Hour, true, false, behind},
		{-2 * time.Hour, false, false, behind},
		{-2 * time.Hour, true, true, behind},
		{time.Minute, false, false, "goes with it"},
		{time.Minute, false, true, "goes with it"},
		{time.Minute, true, true, ""},
		{0, false, true, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			m, clock := old(t)
			if c.before {
				m.step(c.by)
				pass(clock, time.Minute)
			}
			m.close(clock)
			if !c.before {
				m.step(c.by)
			}
			m.log.Reset()
			m.accept = c.accept
			m.close(m.open())
			lines := strings.Count(m.log.String(), "\n")
			if !strings.Contains(m.log.String(), c.want) || (lines > 0) != (c.want != "") ||
				lines > 1 {
				t.Errorf("%+v: %q", c, m.log.String())
			}
		})
	}
}
