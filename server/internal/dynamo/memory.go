package dynamo

import (
	"errors"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
	"github.com/runnel-stream/runnel/server/internal/memlimit"
)

// roomFor makes a change to an item, unless the item grows and the memory is full.
func (s *Service) roomFor(
	old itemstore.Item, change func(old itemstore.Item) (itemstore.Item, error),
) (itemstore.Item, error) {
	item, err := change(old)
	if err != nil || item == nil {
		return item, err
	}
	if full := s.memory.Full(); full != nil && (old == nil ||
		itemstore.Size(item) > itemstore.Size(old)) {
		return nil, full
	}
	return item, nil
}

// transactGrowth counts the bytes by which the steps of a transaction grow their items.
type transactGrowth struct {
	bytes   int
	refused bool // a step was: nothing grows
}

// with counts a step, and returns its result.
func (g *transactGrowth) with(
	old, next itemstore.Item, err error,
) (itemstore.Item, error) {
	g.bytes += sizeOf(next) - sizeOf(old)
	g.refused = g.refused || err != nil
	return next, err
}

// sizeOf returns the size of an item, 0 of none.
func sizeOf(item itemstore.Item) int {
	if item == nil {
		return 0
	}
	return itemstore.Size(item)
}

// roomForAll refuses a transaction whose items grow together if the memory is full.
func (s *Service) roomForAll(g *transactGrowth) error {
	if g.refused || g.bytes <= 0 {
		return nil
	}
	return s.memory.Full()
}

// fullIn returns the refusal of a full memory among the errors of a transaction's steps. It is the
// answer to the whole call, as throttling is: the steps have no fault.
func fullIn(errs []error) error {
	for _, err := range errs {
		if errors.Is(err, memlimit.ErrFull) {
			return err
		}
	}
	return nil
}
