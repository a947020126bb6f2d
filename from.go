package runnel

import (
	"fmt"
	"time"
)

// From is the place where the reading of a stream, or of one shard, begins. The zero value is
// FromOldest. Values are comparable with ==, except that two times may be equal and differ.
type From struct {
	word SequenceNumber // "", Latest, AtTimestamp, or a sequence number
	at   time.Time      // with AtTimestamp; with Latest once it is pinned
}

// FromOldest begins with the oldest record that the stream still has (TRIM_HORIZON).
func FromOldest() From { return From{} }

// FromLatest begins with the records that arrive from now on (LATEST).
func FromLatest() From { return From{word: Latest} }

// FromTime begins with the first record that arrived at t or later (AT_TIMESTAMP).
func FromTime(t time.Time) From { return From{word: AtTimestamp, at: t} }

// FromSequence begins with the record of that number (AT_SEQUENCE_NUMBER). It is for one shard.
func FromSequence(n SequenceNumber) From { return From{word: n} }

// ParseFrom reads "oldest", "latest" or an RFC 3339 time.
func ParseFrom(text string) (From, error) {
	switch text {
	case "oldest":
		return FromOldest(), nil
	case "latest":
		return FromLatest(), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return From{}, fmt.Errorf("where to begin is oldest, latest or a time as "+
			"2026-01-31T08:00:00Z, not %q", text)
	}
	if t.Unix() < 0 {
		return From{}, fmt.Errorf("where to begin is %q, before 1970: want oldest", text)
	}
	return FromTime(t), nil
}

// String returns the text that ParseFrom reads, or the sequence number.
func (f From) String() string {
	switch f.word {
	case "":
		return "oldest"
	case Latest:
		return "latest"
	case AtTimestamp:
		return f.at.Format(time.RFC3339Nano)
	default:
		return string(f.word)
	}
}

// Word returns TrimHorizon, Latest or AtTimestamp; "" for a sequence number.
func (f From) Word() SequenceNumber {
	switch {
	case f.word == "":
		return TrimHorizon
	case f.word.IsNumber():
		return ""
	default:
		return f.word
	}
}

// Sequence returns the sequence number of FromSequence, or "".
func (f From) Sequence() SequenceNumber {
	if f.word.IsNumber() {
		return f.word
	}
	return ""
}

// Time returns the time of FromTime, or that to which FromLatest was pinned; otherwise the zero
// time.
func (f From) Time() time.Time { return f.at }

// Pin returns f, with FromLatest bound to a moment: every shard, and every later attempt, then
// begins with the records that arrived at that moment or later. A time of the stream's own clock is
// needed here, since that clock stamps the arrivals. Pin changes no other value, and none that is
// pinned.
func (f From) Pin(now time.Time) From {
	if f.word == Latest && f.at.IsZero() {
		f.at = now
	}
	return f
}
