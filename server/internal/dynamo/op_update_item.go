package dynamo

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

const updateTooLarge = "Item size to update has exceeded the maximum allowed size"

var updateParameters = &parameters{
	expressions: []string{"UpdateExpression", "ConditionExpression"},
	older:       []string{"AttributeUpdates", "Expected", "ConditionalOperator"},
}

// updateItem changes an item's attributes. Without an item it makes one from the key and the
// attributes, unless the update only removes attributes.
func (s *Service) updateItem(ctx context.Context, call *wire.Call) ([]byte, error) {
	m := parseMembers("UpdateItem", call.Body)
	w := m.write(updateParameters, call)
	given := m.item("Key")
	if given == nil {
		m.required("Key")
	}
	if err := w.parse(&m); err != nil {
		return nil, err
	}
	var err error
	if w.update, err = w.form.update(); err != nil {
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
	if err := w.update.sparesKey(t.Schema()); err != nil {
		return nil, err
	}
	written, err := s.commit(ctx, &w, t, key, roomOf(call.Body, 1),
		func(old itemstore.Item) (itemstore.Item, error) { return w.update.apply(old, given) })
	if err != nil {
		return nil, itemFault(err, updateTooLarge)
	}
	return s.finish(ctx, &w, call.World, written, w.updated)
}

// update returns the request's update.
func (f *form) update() (*update, error) {
	if text, found := f.expression("UpdateExpression"); found {
		return parseUpdate(text, &f.placeholders)
	}
	return legacyUpdate(f.legacy("AttributeUpdates"))
}

// sparesKey refuses an update of the primary key.
func (u *update) sparesKey(schema itemstore.Schema) error {
	for _, at := range u.paths {
		if schema.Has(at[0].name) {
			return invalidParameter("Cannot update attribute %s. This attribute is part of the "+
				"key", at[0].name)
		}
	}
	return nil
}

// updated returns the attributes for ReturnValues; nil for none. UPDATED_OLD and UPDATED_NEW show
// the values at the update's own paths.
func (w *write) updated(written itemstore.Written) itemstore.Item {
	switch w.returnValues {
	case "ALL_OLD":
		return written.Old()
	case "ALL_NEW":
		return written.New()
	case "UPDATED_OLD":
		return w.update.tree.project(written.Old())
	case "UPDATED_NEW":
		return w.update.tree.project(written.New())
	}
	return nil
}
