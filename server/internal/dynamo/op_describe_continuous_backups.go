package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/itemstore"
)

// describeContinuousBackups returns the setting of the last UpdateContinuousBackups.
func (s *Service) describeContinuousBackups(
	ctx context.Context, call *wire.Call,
) ([]byte, error) {
	m := parseMembers("DescribeContinuousBackups", call.Body)
	name := m.tableName()
	if err := m.check(); err != nil {
		return nil, err
	}
	t, err := s.table(ctx, call.World, name, backupsNotFound)
	if err != nil {
		return nil, err
	}
	stats, err := s.items.Describe(ctx, t)
	if errors.Is(err, itemstore.ErrTableNotFound) {
		return nil, backupsNotFound(name)
	}
	if err != nil {
		return nil, err
	}
	return s.describedBackups(stats)
}

// backups is the API's ContinuousBackupsDescription.
type backups struct {
	ContinuousBackupsStatus        string
	PointInTimeRecoveryDescription recoveryDescription
}

type recoveryDescription struct {
	PointInTimeRecoveryStatus  string
	RecoveryPeriodInDays       int64       `json:",omitempty"`
	EarliestRestorableDateTime json.Number `json:",omitempty"`
	LatestRestorableDateTime   json.Number `json:",omitempty"`
}

func (s *Service) describedBackups(stats itemstore.Stats) ([]byte, error) {
	d := backups{"ENABLED", recoveryDescription{PointInTimeRecoveryStatus: "DISABLED"}}
	if recovery := stats.Meta.Recovery; recovery != nil {
		day := int64(24 * 60 * 60 * 1000)
		now := s.now().UnixMilli()
		d.PointInTimeRecoveryDescription = recoveryDescription{
			"ENABLED", recovery.Days,
			seconds(max(recovery.Since, now-recovery.Days*day)), seconds(now),
		}
	}
	var a answer
	if err := a.value("ContinuousBackupsDescription", d); err != nil {
		return nil, err
	}
	return a.bytes(), nil
}

// seconds converts milliseconds since 1970 to seconds, as the API shows them.
func seconds(ms int64) json.Number {
	return json.Number(strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64))
}
