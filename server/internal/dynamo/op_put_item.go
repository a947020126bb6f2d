package dynamo

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

const tooLarge = "Item size has exceeded the maximum allowed size"

// putItem stores an item and replaces the one with the same key.
func (s *Service) putItem(ctx context.Context, call *wire.Call) ([]byte, error) {
	m := parseMembers("PutItem", call.Body)
	w := m.write(writeParameters, call)
	item := m.item("Item")
	if item == nil {
		m.required("Item")
	}
	if err := w.parse(&m); err != nil {
		return nil, err
	}
	if err := w.onlyOld(); err != nil {
		return nil, err
	}
	if err := w.form.finish(); err != nil {
		return nil, err
	}
	if itemstore.Size(item) > itemstore.MaxItemSize {
		return nil, validation(tooLarge)
	}
	t, err := s.table(ctx, call.World, w.table, missingTable)
	if err != nil {
		return nil, err
	}
	if err := s.scalarKeys(ctx, t, &w.form); err != nil {
		return nil, err
	}
	key, err := keyIn(t.Schema(), item)
	if err != nil {
		return nil, err
	}
	if err := s.items.CheckIndexKeys(ctx, t, item); err != nil { // before the condition
		return nil, itemFault(err, tooLarge)
	}
	written, err := s.commit(ctx, &w, t, key, roomOf(call.Body, 1),
		func(itemstore.Item) (itemstore.Item, error) { return item, nil })
	if err != nil {
		return nil, itemFault(err, tooLarge)
	}
	return s.finish(ctx, &w, call.World, written, itemstore.Written.Old)
}
