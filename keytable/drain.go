package keytable

import (
	"context"
	"time"

	"github.com/runnel-stream/runnel/internal/retry"
)

// sighting is the first sight of a session's row with a certain beat.
type sighting struct {
	beat int64
	at   time.Time
}

// drain waits until every session has drained the names that are moving as of a version, or has
// expired. It deletes the row of an expired session on the condition that it was not renewed
// meanwhile; the missing row shows the session that it counts as dead.
//
// A session that has no row yet when drain reads the rows starts later. It then reads the table at
// the version or after it, and finds the names moving.
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
		if err := retry.Wait(ctx, t.cfg.Interval); err != nil {
			return t.wrap("wait for sessions to drain", err)
		}
	}
}

// undrained returns the number of sessions that have not drained.
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

// drained reports whether the row of a session says that it has drained. now is a time after the
// row was read.
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
	return false, nil // a deleted one too: the next look decides
}
