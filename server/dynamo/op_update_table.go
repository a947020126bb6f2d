package dynamo

import (
	"cmp"
	"context"
	"errors"

	"github.com/runnel-stream/runnel/internal/awswire"
	"github.com/runnel-stream/runnel/internal/itemstore"
)

// updateTable changes a table's deletion protection and billing.
func (s *Service) updateTable(ctx context.Context, call *awswire.Call) ([]byte, error) {
	m := parseMembers(call.Body)
	name := m.tableName()
	b := m.billing()
	protect, hasProtect := m.flag("DeletionProtectionEnabled")
	m.none("AttributeDefinitions", "[]")
	m.none("GlobalSecondaryIndexUpdates", "[]")
	m.none("StreamSpecification", `{"StreamEnabled":false}`)
	m.none("SSESpecification", `{"Enabled":false}`)
	m.none("TableClass", `"STANDARD"`)
	m.none("ReplicaUpdates", "[]")
	if err := m.check(); err != nil {
		return nil, err
	}
	if b == (billing{}) && !hasProtect {
		return nil, validation("At least one of ProvisionedThroughput, BillingMode or " +
			"DeletionProtectionEnabled is required")
	}
	t, err := s.table(ctx, call.World, name, tableNotFound)
	if err != nil {
		return nil, err
	}
	stats, err := s.items.AlterTable(ctx, t, func(now itemstore.Stats) (itemstore.Meta, error) {
		meta := now.Meta
		meta.BillingMode = cmp.Or(b.mode, meta.BillingMode)
		if err := b.check(meta.BillingMode); err != nil {
			return meta, err
		}
		if b.throughput || meta.BillingMode == onDemand {
			meta.ReadCapacity, meta.WriteCapacity = b.read, b.write
		}
		if hasProtect {
			meta.DeletionProtection = protect
		}
		return meta, nil
	})
	if errors.Is(err, itemstore.ErrTableNotFound) {
		return nil, tableNotFound(name)
	}
	if err != nil {
		return nil, err
	}
	return described("TableDescription", stats, "UPDATING")
}
