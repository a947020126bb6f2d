package lease

import (
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
)

// Times are the times at which reading begins in rows of other programs that say LATEST or
// AT_TIMESTAMP without a time: Java has none for LATEST, and keeps that of AT_TIMESTAMP in its
// configuration. The zero time is none.
type Times struct {
	Latest      time.Time // of rows at LATEST
	AtTimestamp time.Time // of rows at AT_TIMESTAMP
}

// TimesOf returns the Times of a worker that began at now, by the stream's clock. They are those of
// the application's origin, or else of the worker's own choice. If neither has a time, LATEST means
// now.
func TimesOf(origin, own runnel.From, now time.Time) Times {
	at := origin.Time()
	if at.IsZero() {
		at = own.Time()
	}
	if at.IsZero() {
		return Times{Latest: inMillis(now)}
	}
	return Times{Latest: inMillis(at), AtTimestamp: inMillis(at)}
}

// inMillis returns the time as a row can hold it.
func inMillis(at time.Time) time.Time { return time.UnixMilli(at.UnixMilli()).UTC() }

// WithTimes returns a Table that reads the same rows, and gives them the times that they lack. The
// first take writes such a time into the row, so that the next holder does not begin at another
// one. A row at AT_TIMESTAMP that has no time cannot be read if times have none either: to begin
// with the oldest record instead would process records again that the application left out.
func (t *Table) WithTimes(times Times) *Table { return &Table{cfg: t.cfg, times: &times} }

// read decodes a row and gives it the time that it lacks.
func (t *Table) read(row item) (Lease, error) {
	l, err := decode(row)
	if err != nil || t.times == nil || !l.From.IsZero() {
		return l, err
	}
	switch l.Checkpoint.Sequence {
	case runnel.Latest:
		l.From = t.times.Latest
	case runnel.AtTimestamp:
		if l.From = t.times.AtTimestamp; l.From.IsZero() {
			return l, fmt.Errorf("%w: it begins at a time, AT_TIMESTAMP, that the row does not "+
				"have: start the worker with that time as the origin (Config.From, --from), as "+
				"in the configuration of the Java workers", ErrUnreadableRow)
		}
	}
	return l, nil
}

// setFrom writes the time at which reading begins into the row of another program.
func setFrom(row Lease, u *update) {
	switch row.Checkpoint.Sequence {
	case runnel.Latest, runnel.AtTimestamp:
		if !row.From.IsZero() {
			u.set(attrFrom, num(row.From.UnixMilli()))
		}
	}
}
