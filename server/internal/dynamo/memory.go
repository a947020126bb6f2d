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
