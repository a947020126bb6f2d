package keytable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/retry"
)

// ErrUnusableTable is wrapped for an existing table that is not a key table, has a newer format, or
// has another space.
var ErrUnusableTable = errors.New("the table cannot be used")

const (
	activePoll  = 10 * time.Millisecond // first wait for a new table; doubles
	activePolls = time.Second           // longest wait between two looks
)

// ensure creates the table and its head if they are missing. Other processes may do the same at the
// same time.
func (t *Table) ensure(ctx context.Context) error {
	for wait := activePoll; ; wait = min(2*wait, activePolls) {
		table, err := t.describe(ctx)
		var missing *types.ResourceNotFoundException
		switch {
		case errors.As(err, &missing):
			if err := t.create(ctx); err != nil {
				return t.wrap("create", err)
			}
		case err != nil:
			return t.wrap("describe", err)
		case table.TableStatus == types.TableStatusActive,
			table.TableStatus == types.TableStatusUpdating:
			if s := table.KeySchema; len(s) != 2 || aws.ToString(s[0].AttributeName) != attrID ||
				aws.ToString(s[1].AttributeName) != attrN {
				return t.wrap("open", fmt.Errorf("%w: its primary key is not %s and %s; "+
					"choose another name", ErrUnusableTable, attrID, attrN))
			}
			return t.wrap("make the head", t.ensureHead(ctx))
		}
		if err := retry.Wait(ctx, wait); err != nil {
			return t.wrap("create", err)
		}
	}
}

func (t *Table) describe(ctx context.Context) (*types.TableDescription, error) {
	ctx, cancel := t.call(ctx)
	defer cancel()
	out, err := t.cfg.DynamoDB.DescribeTable(ctx, &dynamodb.DescribeTableInput{
		TableName: &t.cfg.Table,
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
		TableName: &t.cfg.Table,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(attrID), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String(attrN), AttributeType: types.ScalarAttributeTypeN},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(attrID), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(attrN), KeyType: types.KeyTypeRange},
		},
		BillingMode: types.BillingModePayPerRequest,
	})
	var exists *types.ResourceInUseException // another process was first
	if errors.As(err, &exists) {
		return nil
	}
	return err
}

func (t *Table) ensureHead(ctx context.Context) error {
	ctx, cancel := t.call(ctx)
	defer cancel()
	head := primary(idHead, 0)
	head[attrFormat], head[attrVersion] = num(format), num(0)
	head[attrSpace] = str(t.cfg.Space.String())
	_, err := t.cfg.DynamoDB.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &t.cfg.Table, Item: head,
		ConditionExpression: aws.String("attribute_not_exists(" + attrID + ")"),
	})
	if conditionFailed(err) {
		return nil // it is there
	}
	return err
}

func conditionFailed(err error) bool {
	var failed *types.ConditionalCheckFailedException
	return errors.As(err, &failed)
}
