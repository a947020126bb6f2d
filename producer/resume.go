package producer

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
)

// ErrNotResumable is returned by New for a unit in Config.Resume that is damaged, incomplete, too
// large, or from a run with another order.
var ErrNotResumable = errors.New("the unit cannot be resumed")

// thaw checks a unit of an earlier run and returns its records.
func (c Config) thaw(f FrozenUnit) ([]runnel.Record, error) {
	if err := c.checkKeys(f.PartitionKey, f.ExplicitHashKey); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotResumable, err)
	}
	unordered := c.Order == OrderNone
	var d aggregate.Decoder
	if !d.Open(f.Data) {
		return nil, fmt.Errorf("%w: its data is no aggregated record", ErrNotResumable)
	}
	records := make([]runnel.Record, 0, d.Len())
	for sub, r := range d.Records() {
		if unit, ok := r.Unit(); sub == 0 && (!ok || unit != f.Unit) || sub > 0 && ok {
			return nil, fmt.Errorf("%w: its data has another identity", ErrNotResumable)
		}
		key := laneKey{r.PartitionKey, r.ExplicitHashKey}
		outer := laneKey{f.PartitionKey, f.ExplicitHashKey}
		switch {
		case unordered && (sub > 0 || outer == laneKey{outerKey, key.hashKey().String()}):
		case key != outer:
			return nil, fmt.Errorf("%w: its data holds a record of another key, %.40q",
				ErrNotResumable, r.PartitionKey)
		}
		records = append(records, runnel.Record{
			PartitionKey: key.partition, ExplicitHashKey: key.hash, Data: bytes.Clone(r.Data),
		})
	}
	switch size := len(f.Data) + len(f.PartitionKey); {
	case f.Unit.Unordered != unordered:
		return nil, fmt.Errorf("%w: it was frozen in another order than %v; use the order "+
			"of its run", ErrNotResumable, c.Order)
	case f.Unit.Low > f.Unit.Number || f.Unit.Number-f.Unit.Low > aggregate.Window:
		return nil, fmt.Errorf("%w: its identity is none that a producer gives: number %d, low %d",
			ErrNotResumable, f.Unit.Number, f.Unit.Low)
	case len(records) == 0:
		return nil, fmt.Errorf("%w: it has no records", ErrNotResumable)
	case len(f.Marks) != len(records):
		return nil, fmt.Errorf("%w: it has %d records and %d marks", ErrNotResumable, len(records),
			len(f.Marks))
	case f.FrozenAt.IsZero():
		return nil, fmt.Errorf("%w: its FrozenAt is missing; keep all fields that Frozen gets",
			ErrNotResumable)
	case size > c.largest():
		return nil, fmt.Errorf("%w: it has %d bytes, and MaxRecordBytes is %d; raise it to its "+
			"former value", ErrNotResumable, size, c.largest())
	}
	return records, nil
}

// since returns how long ago the unit was frozen, if that was since the machine's last boot.
func (f *FrozenUnit) since(now time.Duration, boot string) (age time.Duration, ok bool) {
	if boot == "" || f.BootID != boot || f.BootTime > now {
		return 0, false
	}
	return now - f.BootTime, true
}

// frozenMargin is how far the clock of FrozenAt may have been ahead of the stream's clock. It is
// used only if there is no other record of when a unit was first sent.
const frozenMargin = 3 * time.Hour

// resume puts a unit of an earlier run into its lane, before any new record of the lane. The unit
// counts as one unknown attempt, because the outcome of the earlier run's attempts is lost. If
// exact is set, age is the time since the unit was frozen. Otherwise dateUnit estimates it when the
// unit's turn comes.
func (c *core) resume(
	now time.Time, f FrozenUnit, records []runnel.Record, age time.Duration, exact bool,
) {
	u := unit{
		count: len(records), data: f.Data, wireSize: len(f.Data) + len(f.PartitionKey), id: f.Unit,
		attempts: 1, unknown: 1, journalled: true, kept: true,
		since: f.ServerTime, from: f.ServerTime.Add(-c.limits.skew()), undated: !exact,
	}
	if exact {
		u.firstSent = now.Add(-age)
		u.lastSent = u.firstSent.Add(c.limits.horizon) // the earlier run sent it no later
	}
	if u.since.IsZero() {
		u.from = f.FrozenAt.Add(-frozenMargin)
	}
	var l *lane
	for i, r := range records {
		e := &entry{record: r, mark: f.Marks[i], resumed: true}
		c.packing.examine(e)
		if !e.hashed {
			e.makeHash()
		}
		e.group = uint8(groupOf(e.hash))
		if i == 0 {
			l = c.packing.adopt(laneKey{f.PartitionKey, f.ExplicitHashKey}, e)
		}
		c.ledger.admit(now, e, l)
		if u.first == nil {
			u.first = e
		} else {
			u.last.next = e
		}
		u.last = e
	}
	c.expectOverdue(now)
	if l.unit.first != nil {
		l.resumed = append(l.resumed, u)
		return
	}
	l.unit = u
	c.ready.push(l, true)
}

// dateUnit sets when a unit was first and last sent, if it was frozen before the machine's last
// boot or on another machine. Then the only evidence is the stream's time before its first attempt,
// if that is known. launch calls dateUnit when it has a Date of this run.
//
// If the stream's clock has advanced by at most H since the unit's first attempt, the unit is sent
// for the rest of H. If that clock stopped in between, more time has really passed. That does no
// harm: readers take their time from the arrivals of the same stream, so their clock has not
// advanced further either. Otherwise the unit is looked up 2H after the start of this run, since
// the last attempt was before that.
func (c *core) dateUnit(now time.Time, u *unit) {
	today, at := c.dates.first, c.dates.firstSeen
	if today.IsZero() {
		today, at = now, now // fall back to the producer's clock
	}
	u.undated, u.lastSent = false, c.began
	by := today.Sub(u.since) + dateStep
	if c.limits.reads && !u.since.IsZero() && !today.Before(u.since) && by <= c.limits.horizon {
		u.firstSent = at.Add(-by)
		return
	}
	u.firstSent = c.began.Add(-c.limits.horizon - time.Nanosecond)
	if u.from.After(today) {
		u.from = time.Time{} // one of the two clocks was wrong by an unknown amount
	}
}
