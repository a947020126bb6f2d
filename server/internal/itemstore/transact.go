package itemstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/server/internal/wal"
)

// MaxTransaction is the largest total size of a transaction's items, in bytes: 4 MB ("Amazon
// DynamoDB Transactions: How it works").
const MaxTransaction = 4 << 20

// Errors of transactions.
var (
	ErrCancelled           = errors.New("transaction cancelled by one of its steps")
	ErrSameItem            = errors.New("two steps of a transaction are about one item")
	ErrTokenUsed           = errors.New("the token belongs to another transaction")
	ErrTransactionTooLarge = fmt.Errorf("transaction of more than %d bytes", MaxTransaction)
)

// Step is a transaction's operation on one item. Decide works like the function of Update. With
// Check the item does not change, and with Delete it goes: only Decide's error counts then.
type Step struct {
	Table  *Table
	Key    Key
	Check  bool
	Delete bool
	Decide func(old Item) (Item, error)
}

// decide calls Decide. The item of a Delete goes whatever Decide returns: its frame has no room for
// another.
func (s Step) decide(old Item) (Item, error) {
	next, err := s.Decide(old)
	if s.Delete {
		next = nil
	}
	return next, err
}

// Outcome is the result of a transaction.
type Outcome struct {
	Written  []Written // of each step
	Errs     []error   // of each step; with ErrCancelled at least one is not nil
	Repeated bool      // an earlier call made the transaction: Written are the present items
}

// Transact decides on all steps at one instant, and then makes all of their changes or none,
// durably, as one frame of the log. room is an estimate of the bytes that the steps may add;
// token may be nil. A transaction that deletes and writes nothing works on a full disk too.
//
// Errors: ErrCancelled, with the outcome, if a step was refused (by its Decide, or with one of
// the errors of Update about items); ErrSameItem; ErrTokenUsed; ErrTransactionTooLarge; ErrKey;
// ErrTableNotFound; ErrItemsMemory; or the log's, after which the outcome is unknown.
func (s *Store) Transact(
	ctx context.Context, steps []Step, room int, token *Token,
) (Outcome, error) {
	x := transaction{steps: steps, decisions: make([]decision, len(steps)), token: token}
	size, err := x.place()
	if err != nil {
		return Outcome{}, err
	}
	by, size := s.log.Sequence, size+room
	if x.frees() {
		by, size = s.log.SequenceFreeing, x.deletesRoom()
	}
	var outcome Outcome
	err = s.decideBy(ctx, by, size, func(tx *wal.Tx) (wal.LSN, error) {
		s.tokens.mu.Lock()
		defer s.tokens.mu.Unlock()
		for _, t := range x.tables {
			t.mu.Lock()
			defer t.mu.Unlock()
		}
		defer x.growth.release(s.memory)
		return s.transact(tx, &x, &outcome)
	})
	if err != nil && !errors.Is(err, ErrCancelled) {
		return Outcome{}, err
	}
	for i := range x.decisions {
		outcome.Written = append(outcome.Written, x.decisions[i].Written)
		outcome.Errs = append(outcome.Errs, x.decisions[i].err)
	}
	return outcome, err
}

// transaction is a transaction during its decision.
type transaction struct {
	steps     []Step
	decisions []decision
	tables    []*Table // each once, in the common order in which transactions lock tables
	token     *Token
	growth    growth
}

// place computes the steps' places and estimates the sizes of the present items.
func (x *transaction) place() (size int, err error) {
	type spot struct {
		table *Table
		place string
	}
	seen := make(map[spot]bool, len(x.steps))
	for i, step := range x.steps {
		if err := step.Table.schema.check(step.Key); err != nil {
			return 0, err
		}
		d := &x.decisions[i]
		d.table, d.key, d.entry = step.Table, step.Key, step.Key.entry()
		d.fixed = step.Check
		if seen[spot{step.Table, d.entry.place}] {
			return 0, ErrSameItem
		}
		seen[spot{step.Table, d.entry.place}] = true
		size += step.Table.sizeAt(d.entry)
		x.tables = append(x.tables, step.Table)
	}
	slices.SortFunc(x.tables, func(a, b *Table) int { return cmp.Compare(a.id, b.id) })
	x.tables = slices.Compact(x.tables)
	return size, nil
}

// frees reports whether the transaction only deletes, and an item is there to delete. Without one
// the frame would hold only the token and free nothing: repeated calls would use up the reserve.
func (x *transaction) frees() (some bool) {
	for i, step := range x.steps {
		if !step.Check && !step.Delete {
			return false
		}
		some = some || step.Delete && step.Table.sizeAt(x.decisions[i].entry) > 0
	}
	return some
}

// deletesRoom is the size of the frame of a transaction that only deletes, as passed to the log.
// The reserve has to hold it, so it is exact, unless some of the items are not there.
func (x *transaction) deletesRoom() int {
	frame := newFrame(nil)
	for i, step := range x.steps {
		if step.Delete {
			frame = appendDelete(frame, step.Table.id, x.decisions[i].key)
		}
	}
	if x.token != nil {
		frame = appendToken(frame, *x.token)
	}
	return len(frame)
}

// transact decides and applies. All locks are held.
func (s *Store) transact(tx *wal.Tx, x *transaction, outcome *Outcome) (wal.LSN, error) {
	if x.token != nil {
		if known := s.tokens.find(x.token); known != nil {
			return x.repeat(known, outcome)
		}
	}
	seen, err := x.decide(s.memory)
	if err != nil {
		return seen, err
	}
	writes := x.token != nil
	for i := range x.decisions {
		writes = writes || x.decisions[i].writes()
	}
	if !writes {
		return seen, nil
	}
	lsn := logged(tx, func(frame []byte) []byte {
		for i := range x.decisions {
			if x.decisions[i].writes() {
				frame = x.decisions[i].append(frame)
			}
		}
		if x.token != nil {
			frame = appendToken(frame, *x.token)
		}
		return frame
	})
	for i := range x.decisions {
		if x.decisions[i].writes() {
			x.decisions[i].apply(lsn)
		}
	}
	if x.token != nil {
		s.tokens.add(*x.token, lsn)
	}
	return lsn, nil
}

// decide calls every step, even after one that refuses, and reserves the memory of all together.
func (x *transaction) decide(memory *memory) (seen wal.LSN, err error) {
	size := 0
	for i, step := range x.steps {
		d := &x.decisions[i]
		d.make(step.decide)
		seen = max(seen, d.seen)
		size += max(d.OldSize, d.NewSize)
		x.growth.add(d)
		switch {
		case errors.Is(d.err, ErrTableNotFound):
			return seen, ErrTableNotFound
		case d.err != nil:
			err = ErrCancelled
		}
	}
	if err == nil && size > MaxTransaction {
		err = ErrTransactionTooLarge
	}
	if err == nil { // a refusal may succeed later as it is
		err = x.growth.reserve(memory)
	}
	return seen, err
}

// repeat answers for a transaction that an earlier call made.
func (x *transaction) repeat(known *knownToken, outcome *Outcome) (wal.LSN, error) {
	if known.Hash != x.token.Hash {
		return known.lsn, ErrTokenUsed
	}
	outcome.Repeated = true
	seen := known.lsn
	for i := range x.decisions {
		d := &x.decisions[i]
		d.fixed = true
		d.make(func(Item) (Item, error) { return nil, nil })
		seen = max(seen, d.seen)
	}
	return seen, nil
}
