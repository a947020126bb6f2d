package dynamo

import (
	"context"
	"errors"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// describeTable returns a table's description. Counts and sizes are current.
func (s *Service) describeTable(ctx context.Context, call *wire.Call) ([]byte, error) {
	m := parseMembers("DescribeTable", call.Body)
	name := m.tableName()
	if err := m.check(); err != nil {
		return nil, err
	}
	t, err := s.table(ctx, call.World, name, tableNotFound)
	if err != nil {
		return nil, err
	}
	stats, err := s.items.Describe(ctx, t)
	if errors.Is(err, itemstore.ErrTableNotFound) {
		return nil, tableNotFound(name)
	}
	if err != nil {
		return nil, err
	}
	return described("Table", describe(stats, "ACTIVE"))
}
