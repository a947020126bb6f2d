package consumer

import (
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/lease"
)

// From is where an application begins to read a stream for which it has no checkpoints yet.
// The zero value is Oldest.
type From struct {
	word runnel.SequenceNumber
	at   time.Time
}

// Oldest begins at the oldest record that the stream still has (TRIM_HORIZON), and Latest with
// the records that arrive from the application's first start on (LATEST).
var (
	Oldest = From{}
	Latest = From{word: runnel.Latest}
)

// At begins with the first record that arrived at t or later (AT_TIMESTAMP).
func At(t time.Time) From { return From{word: runnel.AtTimestamp, at: t} }

// ParseFrom reads "oldest", "latest" or an RFC 3339 time.
func ParseFrom(text string) (From, error) {
	switch text {
	case "oldest":
		return Oldest, nil
	case "latest":
		return Latest, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return From{}, fmt.Errorf("where to begin is oldest, latest or a time as "+
			"2026-01-31T08:00:00Z, not %q", text)
	}
	return At(t), nil
}

// String returns the text that ParseFrom reads.
func (f From) String() string {
	switch f.word {
	case runnel.Latest:
		return "latest"
	case runnel.AtTimestamp:
		return f.at.Format(time.RFC3339Nano)
	default:
		return "oldest"
	}
}

// origin resolves f, once for all workers and shards: LATEST means now.
func (f From) origin(now time.Time) lease.Origin {
	switch f.word {
	case runnel.Latest:
		return lease.Origin{Word: runnel.Latest, At: now}
	case runnel.AtTimestamp:
		return lease.Origin{Word: runnel.AtTimestamp, At: f.at}
	default:
		return lease.Origin{Word: runnel.TrimHorizon}
	}
}
