package dynamo

import (
	"context"
	"errors"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// deleteTable drops a table, at once.
func (s *Service) deleteTable(ctx context.Context, call *wire.Call) ([]byte, error) {
	m := parseMembers("DeleteTable", call.Body)
	name := m.tableName()
	if err := m.check(); err != nil {
		return nil, err
	}
	t, err := s.table(ctx, call.World, name, tableNotFound)
	if err != nil {
		return nil, err
	}
	stats, err := s.items.DropTable(ctx, t, func(stats itemstore.Stats) error {
		if stats.Meta.DeletionProtection {
			return validation("Resource cannot be deleted as it is currently protected against " +
				"deletion. Disable deletion protection first.")
		}
		return nil
	})
	if errors.Is(err, itemstore.ErrTableNotFound) {
		return nil, tableNotFound(name)
	}
	if err != nil {
		return nil, err
	}
	s.logger.InfoContext(ctx, "table deleted", "table", stats.Meta.Name,
		"account", call.World.Account, "region", call.World.Region, "items", stats.Items)
	return described("TableDescription", describe(stats, "DELETING"))
}
