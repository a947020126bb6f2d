package lease

import (
	"context"
	"errors"
	"strings"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// ErrMultiStream is returned for the table of an application that reads several streams.
var ErrMultiStream = errors.New("the lease table is of an application that reads several " +
	"streams: a worker beside it would put leases of its own there and read everything again: " +
	"use another application name")

// isMultiStream reports whether a key is that of a lease of such an application: the account, the
// stream, its creation and the shard, with colons in between. A key of another shape is one bad row
// at most, and does not end a fleet.
func isMultiStream(key string) bool {
	parts := strings.Split(key, ":")
	return len(parts) >= 4 && isNumber(parts[0]) && parts[1] != "" && isNumber(parts[2])
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// ErrManagedByKCL3 is returned for a table of a KCL 3.x fleet that assigns the leases in its own
// way.
var ErrManagedByKCL3 = errors.New("the lease table is run by KCL 3.x workers, whose " +
	"leader assigns the leases: use another application name, or take the Java fleet back to the " +
	"2.x protocol by the KCL's migration tool (KclMigrationTool, rollback) and then to its mode " +
	"COMPATIBLE_WITH_2X_PHASE1, the only one that writes nothing but leases")

// migrationKey is the row in which KCL 3.x stores the mode of its fleet: in the lease table since
// 3.5, in a table of its own before (MigrationState).
const migrationKey = "Migration3.0"

// RefuseKCL3 returns ErrManagedByKCL3 if a KCL 3.x leader assigns the table's leases. A fleet may
// turn to that while its workers run, so they look now and then.
func (t *Table) RefuseKCL3(ctx context.Context) error {
	row, err := t.getItem(ctx, t.cfg.Table, t.key(migrationKey))
	if err != nil {
		return t.wrap("bind", "", err)
	}
	if row == nil {
		key := item{"key": str(migrationKey)}
		row, err = t.getItem(ctx, t.cfg.Table+"-CoordinatorState", key)
		if err != nil && awserr.DynamoDB.Of(err) != awserr.Missing && !denied(err) {
			return t.wrap("bind", "", err)
		}
	}
	if isNative(row) {
		return t.wrap("bind", "", ErrManagedByKCL3)
	}
	return nil
}

// isNative reports whether the row of migrationKey says that a leader assigns the leases. The row
// wins over the configuration of each Java worker.
func isNative(row item) bool {
	switch text(row, "cv") {
	case "CLIENT_VERSION_3X", "CLIENT_VERSION_3X_WITH_ROLLBACK":
		return true
	}
	return false
}

// denied reports whether the caller may not look. Many policies allow the lease table alone, and
// the other table is only a hint of old 3.x versions.
func denied(err error) bool { return awserr.DynamoDB.Of(err) == awserr.Caller }
