package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/dynamotable"
)

// ErrNotLeaseTable is returned for a table that exists and has another primary key.
var ErrNotLeaseTable = errors.New("the table is not a lease table")

// Ensure creates the table if it is missing, as the KCL does (hash key leaseKey, billed on
// demand), and returns once it is ACTIVE. Others may do the same at the same time.
func (t *Table) Ensure(ctx context.Context) error {
	err := t.table().Ensure(ctx)
	switch {
	case errors.Is(err, dynamotable.ErrOtherKey):
		err = fmt.Errorf("%w: its primary key is not %s; choose another application name",
			ErrNotLeaseTable, attrKey)
	case err == nil:
		return nil
	}
	return t.wrap("open", "", err)
}

// Exists reports whether the table is there, and is not being deleted.
func (t *Table) Exists(ctx context.Context) (bool, error) {
	exists, err := t.table().Exists(ctx)
	if err != nil {
		return false, t.wrap("open", "", err)
	}
	return exists, nil
}

func (t *Table) table() dynamotable.Table {
	return dynamotable.Table{
		DynamoDB: t.cfg.DynamoDB, Name: t.cfg.Table, CallTimeout: t.cfg.CallTimeout,
		Index: byOwner,
		Key:   []dynamotable.Attribute{{Name: attrKey, Type: types.ScalarAttributeTypeS}},
	}
}
