package dynamo

import (
	"context"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

var getParameters = &parameters{
	expressions: []string{projectionExpression},
	older:       []string{"AttributesToGet"},
}

// getItem returns an item. All reads are consistent here: ConsistentRead affects only the
// reported capacity.
func (s *Service) getItem(ctx context.Context, call *wire.Call) ([]byte, error) {
	m := parseMembers("GetItem", call.Body)
	table := m.tableName()
	given := m.item("Key")
	if given == nil {
		m.required("Key")
	}
	consistent, _ := m.flag("ConsistentRead")
	capacity := m.capacity()
	f := m.form(getParameters)
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	shown, err := f.projection()
	if err != nil {
		return nil, err
	}
	if err := f.finish(); err != nil {
		return nil, err
	}
	t, err := s.table(ctx, call.World, table, missingTable)
	if err != nil {
		return nil, err
	}
	if err := s.scalarKeys(ctx, t, &f); err != nil {
		return nil, err
	}
	key, err := keyOf(t.Schema(), given)
	if err != nil {
		return nil, err
	}
	if t.SizeNow(key) >= smallPage {
		done, err := s.pageTurn(ctx)
		defer done()
		if err != nil {
			return nil, itemFault(err, "")
		}
	}
	item, err := s.items.Get(ctx, t, key)
	if err != nil {
		return nil, itemFault(err, "")
	}
	used := consumed{
		table: baseName(call.World, table), own: readUnits(itemstore.Size(item), consistent),
	}
	t.Units().AddRead(used.total())
	var a answer
	a.item("Item", projected(shown, item))
	a.capacity(capacity, used)
	return a.bytes(), nil
}

// projected returns the projected part of an item: an empty item if it has none of the
// attributes.
func projected(shown *projection, item itemstore.Item) itemstore.Item {
	if shown == nil || item == nil {
		return item
	}
	if part := shown.project(item); part != nil {
		return part
	}
	return itemstore.Item{}
}
