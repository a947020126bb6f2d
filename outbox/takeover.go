package outbox

import (
	"context"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/aggregate"
	"github.com/runnel-stream/runnel/producer"
)

// takeOver reads the open units of earlier owners. The producer sends them first, as the same
// bytes under the same identity, or looks them up. If the rows of a unit have changed since, it
// cannot be sent again: its key is held.
func (s *session) takeOver(ctx context.Context) ([]producer.FrozenUnit, error) {
	open, err := s.store.open(ctx)
	if err != nil {
		return nil, err
	}
	var mend change
	open = dropOverlapping(open, &mend)
	var frozen []producer.FrozenUnit
	for len(open) > 0 {
		part := open[:min(len(open), takeOverUnits)]
		open = open[len(part):]
		var ids []int64
		for i := range part {
			ids = append(ids, part[i].ids...)
		}
		rows, err := s.store.rows(ctx, ids)
		if err == nil { // a long journal outlasts the lease
			err = s.store.beat(ctx, s.fence, s.before)
		}
		if err != nil {
			return nil, err
		}
		for i := range part {
			if f, ok := s.thaw(&part[i], rows, &mend); ok {
				frozen = append(frozen, f)
			}
		}
	}
	mend.held = mergeHeld(mend.held)
	if !mend.empty() {
		err = s.store.commit(ctx, s.fence, &mend)
		if refused(err) && len(mend.dead) > 0 { // then they are held
			mend.holdDead(err)
			err = s.store.commit(ctx, s.fence, &mend)
			for _, h := range mend.held {
				s.intake.hold(h.Key, false)
			}
		}
	}
	if len(frozen) > 0 {
		s.log.Info("open units of an earlier relay are sent again", "units", len(frozen))
	}
	return frozen, err
}

// takeOverUnits is the number of units of a read of rows.
const takeOverUnits = 1000

// dropOverlapping removes units of which another, later unit has a row. They never were sent: the
// later unit exists only because they had ended.
func dropOverlapping(open []openUnit, mend *change) []openUnit {
	last := map[int64]int{}
	for i := range open {
		for _, id := range open[i].ids {
			last[id] = i
		}
	}
	kept := open[:0:0]
	for i := range open {
		latest := true
		for _, id := range open[i].ids {
			latest = latest && last[id] == i
		}
		if latest {
			kept = append(kept, open[i])
		} else {
			mend.closed = append(mend.closed, open[i].unitID)
		}
	}
	return kept
}

// thaw makes a unit again from its rows. If it cannot, it adds the remedy to mend.
func (s *session) thaw(
	u *openUnit, rows map[int64]row, mend *change,
) (f producer.FrozenUnit, ok bool) {
	unit := aggregate.Unit{Producer: u.producer, Number: u.number, Low: u.low}
	records := make([]runnel.Record, 0, len(u.ids))
	var there []int64
	var names []rowID
	marks := make([]uint64, 0, len(u.ids))
	for _, id := range u.ids {
		r, exists := rows[id]
		if !exists || r.key != u.key { // deleted; the id may be that of another row
			continue
		}
		there, names = append(there, id), append(names, rowID{id, r.version, checksum(&r)})
		marks = append(marks, uint64(id))
		records = append(records, runnel.Record{
			PartitionKey: r.key, ExplicitHashKey: u.hash, Data: r.data,
		})
	}
	mend.closed = append(mend.closed, u.unitID)
	if len(there) == 0 {
		return f, false // deleted, and so sent or unwanted
	}
	data, err := producer.EncodeUnit(unit, records)
	switch {
	case len(there) < len(u.ids):
		err = fmt.Errorf("%d of %d rows are no longer there", len(u.ids)-len(there), len(u.ids))
	case err == nil && crc32.Checksum(data, castagnoli) != u.crc:
		err = fmt.Errorf("the rows have changed")
	}
	if err != nil {
		s.holdChanged(u, there, names, err, mend)
		return f, false
	}
	mend.closed = mend.closed[:len(mend.closed)-1]
	for _, id := range u.ids {
		r := rows[id]
		s.intake.resume(&r)
	}
	s.journal.resume(u)
	return producer.FrozenUnit{
		Unit: unit, PartitionKey: u.key, ExplicitHashKey: u.hash, Data: data, Marks: marks,
		FrozenAt: timeOf(u.frozenNS), ServerTime: timeOf(u.serverNS),
		BootID: u.bootID, BootTime: time.Duration(u.bootNS),
	}, true
}

// holdChanged holds the key of a unit that cannot be made again, or makes its rows dead letters.
func (s *session) holdChanged(
	u *openUnit, there []int64, names []rowID, cause error, mend *change,
) {
	reason := fmt.Sprintf("the rows of a unit that may be in the stream are not as they were when "+
		"it was sent: %v", cause)
	s.log.Warn("a key's unit cannot be sent again", "key", u.key, "ids", there, "error", cause)
	if s.cfg.DeadLetter {
		mend.bury(names, u.key, reason)
		return
	}
	s.intake.hold(u.key, false)
	mend.held = append(mend.held, HeldKey{Key: u.key, Reason: reason, IDs: there})
}
