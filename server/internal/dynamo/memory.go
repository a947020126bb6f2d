package dynamo

import (
	"errors"

	"github.com/runnel-stream/runnel/server/internal/itemstore"
	"github.com/runnel-stream/runnel/server/internal/memlimit"
)

// Items in memory take more than their bytes: a map, boxed values, a place in the table's tree, and
// a snapshot. So many small attributes take ten times their size as DynamoDB counts it. The
// estimates are by measurement, and rather high: see bench/README.md.
const (
	tableMemory = 8 << 10
	itemMemory  = 512 // bytes of an item besides its attributes, and of its place in an index
	valueMemory = 112 // bytes of a value and its name, besides what they say
	timesMemory = 3   // for each byte of names and values: the item, a snapshot, and the next one
)

// memoryOf estimates the memory of an item; nil takes none.
func memoryOf(item itemstore.Item) int64 {
	if item == nil {
		return 0
	}
	return itemMemory + valueMemory*valuesIn(item) +
		timesMemory*int64(itemstore.Size(item))
}

// valuesIn returns the number of values in a value, with itself.
func valuesIn(value itemstore.Value) int64 {
	n := int64(1)
	switch v := value.(type) {
	case itemstore.StringSet:
		n += int64(len(v))
	case itemstore.BinarySet:
		n += int64(len(v))
	case itemstore.NumberSet:
		n += int64(len(v))
	case itemstore.List:
		for _, element := range v {
			n += valuesIn(element)
		}
	case itemstore.Map:
		for _, element := range v {
			n += valuesIn(element)
		}
	}
	return n
}

// memoryOfIndexes estimates the memory of a table's indexes, which share the values of its items.
func memoryOfIndexes(t itemstore.Stats) (sum int64) {
	for _, x := range t.Indexes {
		sum += x.Items * (itemMemory + valueMemory)
	}
	return sum
}

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

// keep counts the memory of a write that the store has made.
func (s *Service) keep(t *itemstore.Table, w itemstore.Written, err error) {
	if err != nil || s.memory == nil {
		return
	}
	more := memoryOf(w.New) - memoryOf(w.Old)
	for _, x := range w.Indexes {
		more += int64(min(x.NewSize, 1)-min(x.OldSize, 1)) * (itemMemory + valueMemory)
	}
	s.memory.Keep(t.Held().Add(more))
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
