package dynamo

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// deleteItem removes an item; if there is none, it succeeds without effect.
func (s *Service) deleteItem(ctx context.Context, call *wire.Call) ([]byte, error) {
	m := parseMembers("DeleteItem", call.Body)
	w := m.write(writeParameters, call)
	given := m.item("Key")
	if given == nil {
		m.required("Key")
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
	t, err := s.table(ctx, call.World, w.table, missingTable)
	if err != nil {
		return nil, err
	}
	if err := s.scalarKeys(ctx, t, &w.form); err != nil {
		return nil, err
	}
	key, err := keyOf(t.Schema(), given)
	if err != nil {
		return nil, err
	}
	written, err := s.items.Delete(ctx, t, key, func(old itemstore.Item) error {
		defer w.decided(ctx)
		return w.allow(old)
	})
	if err := s.count(ctx, &w, t, written, err); err != nil {
		return nil, itemFault(err, "")
	}
	return s.finish(ctx, &w, call.World, written, itemstore.Written.Old)
}
