package dynamo

import (
	"context"
	"errors"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

const recoveryDays = 35 // RecoveryPeriodInDays: the default and the maximum

// updateContinuousBackups stores a table's setting for point-in-time recovery. The server makes
// no backups, and has no operation to restore one.
func (s *Service) updateContinuousBackups(
	ctx context.Context, call *wire.Call,
) ([]byte, error) {
	m := parseMembers("UpdateContinuousBackups", call.Body)
	name := m.tableName()
	var enabled, hasDays bool
	days := int64(recoveryDays)
	if inner := m.structure("PointInTimeRecoverySpecification",
		"PointInTimeRecoverySpecification"); inner == nil {
		m.required("PointInTimeRecoverySpecification")
	} else {
		var given, found bool
		if given, found = inner.flag("PointInTimeRecoveryEnabled"); !found {
			inner.required("PointInTimeRecoveryEnabled")
		}
		enabled = given
		if n, found := inner.within("RecoveryPeriodInDays", 1, recoveryDays); found {
			days, hasDays = n, true
		}
		m.absorb(inner)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	if !enabled && hasDays {
		return nil, validation("Invalid Request: Cannot specify RecoveryPeriodInDays when " +
			"disabling point-in-time recovery.")
	}
	t, err := s.table(ctx, call.World, name, backupsNotFound)
	if err != nil {
		return nil, err
	}
	stats, err := s.items.AlterTable(ctx, t, func(now itemstore.Stats) (itemstore.Meta, error) {
		meta := now.Meta
		switch {
		case !enabled:
			meta.Recovery = nil
		case meta.Recovery == nil:
			meta.Recovery = &itemstore.Recovery{Since: s.now().UnixMilli(), Days: days}
		default:
			meta.Recovery = &itemstore.Recovery{Since: meta.Recovery.Since, Days: days}
		}
		return meta, nil
	})
	if errors.Is(err, itemstore.ErrTableNotFound) {
		return nil, backupsNotFound(name)
	}
	if err != nil {
		return nil, err
	}
	return s.describedBackups(stats)
}

// backupsNotFound is the answer of the operations on backups for a missing table.
func backupsNotFound(name string) *wire.Error {
	return fault("TableNotFoundException", "Table not found: %s", name)
}
