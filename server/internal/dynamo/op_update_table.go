package dynamo

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// tableUpdate holds the members of an UpdateTable.
type tableUpdate struct {
	table       string
	billing     billing
	protect     *bool
	definitions []attributeDefinition
	indexes     []indexUpdate
}

// updateTable changes a table's deletion protection and billing, and makes and drops indexes. A
// new index is complete before the answer, which nevertheless says CREATING; later answers say
// ACTIVE.
func (s *Service) updateTable(ctx context.Context, call *wire.Call) ([]byte, error) {
	u, err := parseTableUpdate(call.Body)
	if err != nil {
		return nil, err
	}
	t, err := s.table(ctx, call.World, u.table, tableNotFound)
	if err != nil {
		return nil, err
	}
	var before itemstore.Stats
	stats, err := s.items.AlterTable(ctx, t, func(now itemstore.Stats) (itemstore.Meta, error) {
		before = now
		meta := now.Meta
		meta.Indexes = slices.Clone(meta.Indexes)
		return meta, u.apply(&meta)
	})
	if errors.Is(err, itemstore.ErrTableNotFound) {
		return nil, tableNotFound(u.table)
	}
	if err != nil {
		return nil, err
	}
	return described("TableDescription", u.describe(before, stats))
}

func parseTableUpdate(body []byte) (*tableUpdate, error) {
	m := parseMembers("UpdateTable", body)
	u := &tableUpdate{table: m.tableName(), billing: m.billing()}
	if protect, found := m.flag("DeletionProtectionEnabled"); found {
		u.protect = &protect
	}
	u.definitions, _ = m.definitions()
	var fault error
	u.indexes, fault = m.indexUpdates()
	m.none("StreamSpecification", `{"StreamEnabled":false}`)
	m.none("SSESpecification", `{"Enabled":false}`)
	m.none("TableClass", `"STANDARD"`)
	m.none("ReplicaUpdates", "[]")
	if err := m.check(); err != nil {
		return nil, err
	}
	if u.billing == (billing{}) && u.protect == nil && len(u.indexes) == 0 {
		return nil, validation("At least one of ProvisionedThroughput, BillingMode, " +
			"UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, " +
			"ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, " +
			"MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, " +
			"WarmThroughput or TableClass is required")
	}
	return u, fault
}

// apply applies the update to a description, which must have its own copy of the list of indexes.
func (u *tableUpdate) apply(meta *itemstore.Meta) error {
	meta.BillingMode = cmp.Or(u.billing.mode, meta.BillingMode)
	if err := u.billing.check(meta.BillingMode); err != nil {
		return err
	}
	if u.billing.throughput || meta.BillingMode == onDemand {
		meta.ReadCapacity, meta.WriteCapacity = u.billing.read, u.billing.write
	}
	if u.protect != nil {
		meta.DeletionProtection = *u.protect
	}
	if err := u.applyIndexes(meta); err != nil {
		return err
	}
	return checkDefinitions(u.definitions, meta)
}

func (u *tableUpdate) applyIndexes(meta *itemstore.Meta) error {
	made := 0
	for _, one := range u.indexes {
		if one.verb != "Update" {
			made++
		}
	}
	switch {
	case made > 1:
		return fault("LimitExceededException", "Subscriber limit exceeded: Only 1 online index "+
			"can be created or deleted simultaneously per table")
	case made > 0 && u.billing.throughput:
		return invalidParameter("You cannot create or delete index while updating table IOPS")
	}
	for _, one := range u.indexes {
		if err := one.apply(meta, u.definitions); err != nil {
			return err
		}
	}
	for i := range meta.Indexes {
		index := &meta.Indexes[i]
		switch {
		case meta.BillingMode == onDemand:
			index.ReadCapacity, index.WriteCapacity = 0, 0
		case index.ReadCapacity == 0:
			return invalidParameter("ProvisionedThroughput must be specified for index: %s",
				index.Name)
		}
	}
	return checkIndexes(meta.Indexes)
}

// describe shows indexes that the update has made or dropped as if that were in progress.
func (u *tableUpdate) describe(before, after itemstore.Stats) tableDescription {
	d := describe(after, "UPDATING")
	for _, one := range u.indexes {
		i := slices.IndexFunc(d.GlobalSecondaryIndexes,
			func(index indexDescription) bool { return index.IndexName == one.name })
		switch one.verb {
		case "Create":
			d.GlobalSecondaryIndexes[i].IndexStatus = "CREATING"
			d.GlobalSecondaryIndexes[i].Backfilling = new(bool)
		case "Update":
			d.GlobalSecondaryIndexes[i].IndexStatus = "UPDATING"
		case "Delete":
			for _, gone := range describe(before, "").GlobalSecondaryIndexes {
				if gone.IndexName == one.name {
					gone.IndexStatus = "DELETING"
					d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, gone)
				}
			}
		}
	}
	return d
}
