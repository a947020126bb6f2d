package outbox

import (
	"context"
	"slices"
	"time"
)

// turns reads rows of keys that were passed over and have room again, until no further row is
// taken. It returns how many reads have taken rows.
func (r *reader) turns(ctx context.Context) (turned int, err error) {
	for stuck := 0; stuck < groups; {
		places, rows := r.intake.turns(turnKeys)
		if len(places) == 0 {
			break
		}
		most := limits{bytes: windowBytes, until: r.until}
		most.rows = max(1, min(rows, windowRows, windowBytes/max(1, r.rowBytes)))
		moved, err := r.turn(ctx, places, most)
		if err != nil {
			return turned, err
		}
		if stuck++; moved {
			turned++
			stuck = 0
		}
	}
	return turned, nil
}

// turn reads rows of some keys. Whatever happens, each of them gets the end of its turn. moved
// reports whether one of them has gone on.
func (r *reader) turn(
	ctx context.Context, places []place, most limits,
) (moved bool, err error) {
	r.intake.beginRead()
	defer r.intake.endRead()
	p, err := r.store.ofKeys(ctx, places, most)
	if err == nil && len(p.rows) > 0 {
		r.measure(p.rows)
		err = r.store.secure(ctx)
	}
	if err != nil {
		for _, at := range places {
			r.intake.endTurn(at, at.from, false)
		}
		return false, err
	}
	byKey := map[string][]row{}
	for _, found := range p.rows {
		byKey[found.key] = append(byKey[found.key], found)
	}
	last := ""
	if p.full && len(p.rows) > 0 {
		last = p.rows[len(p.rows)-1].key
	}
	for _, at := range places {
		rows := byKey[at.key]
		slices.SortFunc(rows, byID)
		// Of a read that was cut off, the last key is not complete, and one without rows is
		// unknown.
		cut := p.full && (at.key == last || len(rows) == 0)
		next, done := at.from, false
		if err == nil {
			next, done, err = r.takeTurn(ctx, at, rows, cut || len(rows) >= most.rows)
		}
		r.intake.endTurn(at, next, done)
		moved = moved || done || next != at.from
	}
	return moved, err
}

// takeTurn takes rows of a key as long as there is room. It returns the lowest row that it has not
// taken, and whether there is none.
func (r *reader) takeTurn(
	ctx context.Context, at place, rows []row, more bool,
) (next int64, done bool, err error) {
	next = at.from
	for i := range rows {
		switch r.intake.admitTurn(&rows[i]) {
		case full:
			return rows[i].id, false, nil
		case take:
			if err := r.putRow(ctx, &rows[i]); err != nil {
				return rows[i].id, false, err
			}
		case leave:
		}
		next = rows[i].id + 1
	}
	return next, !more, nil
}

// sweep looks for rows up to a mark that no pass has shown. It returns how many it has found; they
// are read with their keys.
func (r *reader) sweep(ctx context.Context, mark int64) (found int, err error) {
	began := time.Now()
	for after := lowest; mark > lowest && mark != 0; { // 0 would be no bound
		w := window{
			after: after, skip: r.intake.skipped(skippedKeys),
			most: limits{rows: sweepRows, until: mark},
		}
		r.intake.beginRead()
		rows, err := r.store.ids(ctx, w)
		for i := range rows {
			if r.intake.missed(&rows[i]) {
				found++
			}
		}
		r.intake.endRead()
		if err != nil {
			return found, err
		}
		if len(rows) < sweepRows {
			break
		}
		after = rows[len(rows)-1].id
	}
	// A table of many rows is read seldom enough to cost little.
	r.swept = time.Now().Add(9 * time.Since(began))
	return found, nil
}
