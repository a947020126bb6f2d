package producer

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
)

// ErrResume is returned by New for a unit in Config.Resume that no Journal was given.
var ErrResume = errors.New("the unit cannot be resumed")

// maxAhead is how far an earlier run's clock may be ahead of this one's.
const maxAhead = time.Minute

// thaw returns the records of a unit of an earlier run.
func (c Config) thaw(f FrozenUnit, now time.Time) ([]runnel.Record, error) {
	if err := c.checkKeys(f.PartitionKey, f.ExplicitHashKey); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResume, err)
	}
	var d aggregate.Decoder
	if !d.Open(f.Data) {
		return nil, fmt.Errorf("%w: its data is no aggregated record", ErrResume)
	}
	records := make([]runnel.Record, 0, d.Len())
	for sub, r := range d.Records() {
		if unit, ok := r.Unit(); sub == 0 && (!ok || unit != f.Unit) || sub > 0 && ok {
			return nil, fmt.Errorf("%w: its data has another identity", ErrResume)
		}
		key := laneKey{r.PartitionKey, r.ExplicitHashKey}
		outer := laneKey{f.PartitionKey, f.ExplicitHashKey}
		switch {
		case c.Order == OrderNone && (sub > 0 || outer == key.packed()):
		case key != outer:
			return nil, fmt.Errorf("%w: its data holds a record of another key, %.40q", ErrResume,
				r.PartitionKey)
		}
		records = append(records, runnel.Record{
			PartitionKey: key.partition, ExplicitHashKey: key.hash, Data: bytes.Clone(r.Data),
		})
	}
	switch size := len(f.Data) + len(f.PartitionKey); {
	case f.Unit.Unordered != (c.Order == OrderNone):
		return nil, fmt.Errorf("%w: it was frozen in another order than %v; use the order "+
			"of its run", ErrResume, c.Order)
	case f.Unit.Low > f.Unit.Number || f.Unit.Number-f.Unit.Low > aggregate.Window:
		return nil, fmt.Errorf("%w: its identity is none that a producer gives: number %d, low %d",
			ErrResume, f.Unit.Number, f.Unit.Low)
	case len(records) == 0:
		return nil, fmt.Errorf("%w: it has no records", ErrResume)
	case len(f.Marks) != len(records):
		return nil, fmt.Errorf("%w: it has %d records and %d marks", ErrResume, len(records),
			len(f.Marks))
	case f.FrozenAt.IsZero() || f.FrozenAt.After(now.Add(maxAhead)):
		return nil, fmt.Errorf("%w: it was frozen at %v, and now it is %v; set the clock right",
			ErrResume, f.FrozenAt, now)
	case size > c.largest():
		return nil, fmt.Errorf("%w: it has %d bytes, and MaxRecordBytes is %d; raise it to what "+
			"it was", ErrResume, size, c.largest())
	}
	return records, nil
}

// resume takes in a unit of an earlier run, before anything else of its lane. Some attempt of
// it is unknown for all that is known here, and may have been made up to a horizon after it was
// frozen.
func (c *core) resume(now time.Time, f FrozenUnit, records []runnel.Record) {
	u := unit{
		count: len(records), data: f.Data, wide: len(f.Data) + len(f.PartitionKey), id: f.Unit,
		attempts: 1, unknown: 1,
		firstSent: f.FrozenAt, lastSent: f.FrozenAt.Add(c.limits.horizon),
		journalled: true, kept: true,
	}
	l := &lane{key: laneKey{f.PartitionKey, f.ExplicitHashKey}, carrier: c.limits.packs}
	for i, r := range records {
		e := &entry{record: r, mark: f.Marks[i], resumed: true}
		if c.limits.packs {
			e.hash = laneKey{r.PartitionKey, r.ExplicitHashKey}.hashKey()
		} else {
			l = c.laneFor(e)
		}
		c.admit(now, e, l)
		if u.first == nil {
			u.first = e
		} else {
			u.last.next = e
		}
		u.last = e
	}
	if c.limits.giveUp > 0 && c.sweepAt.IsZero() {
		c.sweepAt = now.Add(c.limits.giveUp)
	}
	if l.unit.first != nil {
		l.resumed = append(l.resumed, u)
		return
	}
	l.unit = u
	c.ready.push(l, true)
}
