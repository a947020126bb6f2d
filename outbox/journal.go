package outbox

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/producer"
)

// journal is the producer's Journal in the table outbox_journal. A unit is committed there before
// it is first sent, by the ids of its rows: the rows are in the table until the unit's row is
// deleted with them, and producer.EncodeUnit makes the same bytes of them.
//
// A unit that ended and is not in the stream no longer holds back the low mark of later units. So
// its row must be gone before any later unit is sent: a new owner would resume it below the low
// mark of that unit, readers would drop it, and its rows would be deleted as sent. The producer
// calls Settled for it before Frozen for any later unit, so the transaction of those units, or an
// earlier one, deletes it.
type journal struct {
	intake     *intake
	committer  *committer
	deadLetter bool
	warn       func(message string, args ...any)

	mu      sync.Mutex
	units   map[unitID]*sentUnit
	refused map[unitID]*sentUnit // refused in Frozen, and so never stored
}

// sentUnit is an open unit of this session.
type sentUnit struct {
	key string
	ids []int64
}

func newJournal(n *intake, c *committer) *journal {
	return &journal{
		intake: n, committer: c, units: map[unitID]*sentUnit{}, refused: map[unitID]*sentUnit{},
	}
}

// errKeyHeld is the reason of records that come back because an earlier one of their key was not
// delivered.
var errKeyHeld = errors.New("an earlier row of the key could not be put")

// Frozen implements producer.Journal.
func (j *journal) Frozen(ctx context.Context, frozen []producer.FrozenUnit) error {
	var refused map[int]error
	opened := make([]openUnit, 0, len(frozen))
	j.mu.Lock()
	for i := range frozen {
		u := openOf(&frozen[i])
		sent := &sentUnit{key: u.key, ids: u.ids}
		if j.intake.refuses(u.key) {
			if refused == nil {
				refused = map[int]error{}
			}
			refused[i], j.refused[u.unitID] = errKeyHeld, sent
			continue
		}
		j.units[u.unitID] = sent
		opened = append(opened, u)
	}
	j.mu.Unlock()
	if len(opened) > 0 {
		err := j.committer.commit(ctx, func(c *change) { c.opened = append(c.opened, opened...) })
		if err != nil {
			return err
		}
	}
	if refused != nil {
		return &producer.RefusedUnitsError{Units: refused}
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func openOf(f *producer.FrozenUnit) openUnit {
	u := openUnit{
		unitID: unitID{f.Unit.Producer, f.Unit.Number}, low: f.Unit.Low,
		key: f.PartitionKey, hash: f.ExplicitHashKey, ids: make([]int64, len(f.Marks)),
		crc:      crc32.Checksum(f.Data, castagnoli),
		frozenNS: nanoseconds(f.FrozenAt), serverNS: nanoseconds(f.ServerTime),
		bootID: f.BootID, bootNS: int64(f.BootTime),
	}
	for i, mark := range f.Marks {
		u.ids[i] = int64(mark)
	}
	return u
}

// nanoseconds returns a time for the journal: 0 for the zero time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Settled implements producer.Journal.
func (j *journal) Settled(ends []producer.SettledUnit) {
	var next change
	j.mu.Lock()
	for i := range ends {
		j.settle(&next, &ends[i])
	}
	j.mu.Unlock()
	j.committer.add(func(c *change) {
		c.closed = append(c.closed, next.closed...)
		c.deleted = append(c.deleted, next.deleted...)
		c.held = append(c.held, next.held...)
		c.dead = append(c.dead, next.dead...)
	})
}

func (j *journal) settle(next *change, end *producer.SettledUnit) {
	id := unitID{end.Producer, end.Number}
	if sent := j.refused[id]; sent != nil {
		delete(j.refused, id)
		j.intake.putBack(sent.ids)
		return
	}
	sent := j.units[id]
	if sent == nil {
		return
	}
	delete(j.units, id)
	if end.Outcome == producer.OutcomeStored {
		next.deleted = append(next.deleted, sentRows{id, j.intake.named(sent.ids)})
		return
	}
	next.closed = append(next.closed, id)
	switch end.Outcome {
	case producer.OutcomeStored, producer.OutcomeRenewed: // its rows are still in the producer
	case producer.OutcomeUndelivered:
		reason := fmt.Sprint(end.Err)
		j.warn("rows were not delivered", "key", sent.key, "rows", sent.ids, "error", end.Err)
		if j.deadLetter {
			next.bury(j.intake.named(sent.ids), sent.key, reason)
			return
		}
		j.intake.hold(sent.key, true)
		j.intake.putBack(sent.ids)
		next.held = append(next.held, HeldKey{Key: sent.key, Reason: reason, IDs: sent.ids})
	}
}

// bury adds dead letters.
func (c *change) bury(rows []rowID, key, reason string) {
	for _, r := range rows {
		c.dead = append(c.dead, deadRow{r, key, reason})
	}
}

// open returns how many units are open.
func (j *journal) open() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.units)
}

// resume adds a unit of an earlier owner.
func (j *journal) resume(u *openUnit) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.units[u.unitID] = &sentUnit{key: u.key, ids: slices.Clone(u.ids)}
}
