package assign

import (
	"context"
	"time"
)

// sighting is a session's row as it was first seen with that beat, and when.
type sighting struct {
	beat int64
	at   time.Time
}

// drain waits until every session has drained what moves as of a version, or has expired. One
// that has expired is deleted, on the condition that it was silent until then: it learns so that
// it was taken for dead.
//
// A session that is not there yet when the rows are read begins after that: it reads the table
// behind the version, and finds the names moving.
func (t *Table) drain(ctx context.Context, version int64, report func(left int)) error {
	seen := map[int64]sighting{}
	for {
		left, err := t.undrained(ctx, version, seen)
		switch {
		case err == nil:
			if report(left); left == 0 {
				return nil
			}
		case ctx.Err() != nil || !retryable(err):
			return t.wrap("read the sessions", err)
		}
		if err := pause(ctx, t.cfg.Interval); err != nil {
			return t.wrap("wait for sessions to drain", err)
		}
	}
}

// undrained returns how many sessions have not drained.
func (t *Table) undrained(
	ctx context.Context, version int64, seen map[int64]sighting,
) (left int, err error) {
	rows, err := t.query(ctx, idSession, 0)
	if err != nil {
		return 0, err
	}
	now := time.Now()
	for _, one := range rows {
		drained, err := t.drained(ctx, one, version, now, seen)
		if err != nil {
			return 0, err
		}
		if !drained {
			left++
		}
	}
	return left, nil
}

// drained reports whether a session has told that it has drained. now is after it was read.
func (t *Table) drained(
	ctx context.Context, one item, version int64, now time.Time, seen map[int64]sighting,
) (bool, error) {
	var values [4]int64
	for i, attribute := range []string{attrN, attrBeat, attrDrained, attrExpiry} {
		var err error
		if values[i], err = number(one, attribute); err != nil {
			return false, err
		}
	}
	id, beat, drained, expiry := values[0], values[1], values[2], values[3]
	if drained >= version {
		return true, nil
	}
	if before, known := seen[id]; !known || before.beat != beat {
		seen[id] = sighting{beat: beat, at: now}
	} else if now.Sub(before.at) > time.Duration(expiry)*time.Millisecond {
		return false, t.delete(ctx, primary(idSession, id), one[attrBeat])
	}
	return false, nil // also one that is deleted: the next look tells
}
