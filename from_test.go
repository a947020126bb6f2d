package runnel_test

import (
	"testing"
	"time"

	"github.com/runnel-stream/runnel"
)

func TestParseFrom(t *testing.T) {
	for _, text := range []string{"oldest", "latest", "2026-01-31T08:00:00Z"} {
		if f, err := runnel.ParseFrom(text); err != nil || f.String() != text {
			t.Errorf("%s: %s, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "newest", "2026-01-31", "007", "-1", "49"} {
		if _, err := runnel.ParseFrom(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// Each beginning has one word or a number, and only FromLatest is bound by Pin, once.
func TestFrom(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	later := noon.Add(time.Hour)
	for _, c := range []struct {
		from     runnel.From
		word     runnel.SequenceNumber
		sequence runnel.SequenceNumber
		pinned   time.Time
	}{
		{runnel.From{}, runnel.TrimHorizon, "", time.Time{}},
		{runnel.FromOldest(), runnel.TrimHorizon, "", time.Time{}},
		{runnel.FromLatest(), runnel.Latest, "", later},
		{runnel.FromLatest().Pin(noon), runnel.Latest, "", noon},
		{runnel.FromTime(noon), runnel.AtTimestamp, "", noon},
		{runnel.FromSequence("49"), "", "49", time.Time{}},
	} {
		at := c.from.Pin(later).Time()
		if c.from.Word() != c.word || c.from.Sequence() != c.sequence || !at.Equal(c.pinned) {
			t.Errorf("%s: %q, %q, pinned to %s", c.from, c.from.Word(), c.from.Sequence(), at)
		}
	}
}
