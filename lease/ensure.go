package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ErrNotLeaseTable is returned for a table that exists and has another primary key.
var ErrNotLeaseTable = errors.New("the table is not a lease table")

const (
	activePoll  = 10 * time.Millisecond // first wait for a new table; doubles
	activePolls = time.Second           // longest wait between two looks
)

// Ensure creates the table if it is missing, as the KCL does (hash key leaseKey, billed on
// demand), and returns once it is ACTIVE. Others may do the same at the same time.
func (t *Table) Ensure(ctx context.Context) error {
	for wait := activePoll; ; wait = min(2*wait, activePolls) {
		table, err := t.describe(ctx)
		var missing *types.ResourceNotFoundException
		switch {
		case errors.As(err, &missing):
			if err := t.create(ctx); err != nil {
				return t.wrap("create", "", err)
			}
		case err != nil:
			return t.wrap("describe", "", err)
		case table.TableStatus == types.TableStatusActive,
			table.TableStatus == types.TableStatusUpdating:
			return t.checkKey(table)
		}
		select {
		case <-ctx.Done():
			return t.wrap("create", "", context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// Exists reports whether the table is there, and is not being deleted.
func (t *Table) Exists(ctx context.Context) (bool, error) {
	table, err := t.describe(ctx)
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &missing):
		return false, nil
	case err != nil:
		return false, t.wrap("describe", "", err)
	}
	return table.TableStatus != types.TableStatusDeleting, nil
}

func (t *Table) describe(ctx context.Context) (*types.TableDescription, error) {
	ctx, cancel := t.call(ctx)
	defer cancel()
	out, err := t.cfg.DynamoDB.DescribeTable(ctx, &dynamodb.DescribeTableInput{
		TableName: aws.String(t.cfg.Table),
	})
	if err != nil {
		return nil, err
	}
	return out.Table, nil
}

func (t *Table) create(ctx context.Context) error {
	ctx, cancel := t.call(ctx)
	defer cancel()
	_, err := t.cfg.DynamoDB.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String(t.cfg.Table),
		AttributeDefinitions: []types.AttributeDefinition{{
			AttributeName: aws.String(attrKey), AttributeType: types.ScalarAttributeTypeS,
		}},
		KeySchema: []types.KeySchemaElement{{
			AttributeName: aws.String(attrKey), KeyType: types.KeyTypeHash,
		}},
		BillingMode: types.BillingModePayPerRequest,
	})
	var exists *types.ResourceInUseException // another worker was first
	if errors.As(err, &exists) {
		return nil
	}
	return err
}

func (t *Table) checkKey(table *types.TableDescription) error {
	if len(table.KeySchema) == 1 && aws.ToString(table.KeySchema[0].AttributeName) == attrKey {
		return nil
	}
	return t.wrap("open", "", fmt.Errorf("%w: its primary key is not %s; choose another "+
		"application name", ErrNotLeaseTable, attrKey))
}
