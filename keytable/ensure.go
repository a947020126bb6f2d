package keytable

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/dynamotable"
)

// ErrUnusableTable is wrapped for an existing table that is not a key table, has a newer format, or
// has another space.
var ErrUnusableTable = errors.New("the table cannot be used")

// ensure creates the table and its head if they are missing. Other processes may do the same at the
// same time.
func (t *Table) ensure(ctx context.Context) error {
	table := dynamotable.Table{
		DynamoDB: t.cfg.DynamoDB, Name: t.cfg.Table, CallTimeout: t.cfg.CallTimeout,
		Key: []dynamotable.Attribute{
			{Name: attrID, Type: types.ScalarAttributeTypeS},
			{Name: attrN, Type: types.ScalarAttributeTypeN},
		},
	}
	err := table.Ensure(ctx)
	if errors.Is(err, dynamotable.ErrOtherKey) {
		err = fmt.Errorf("%w: its primary key is not %s and %s; choose another name",
			ErrUnusableTable, attrID, attrN)
	}
	if err != nil {
		return t.wrap("open", err)
	}
	return t.wrap("make the head", t.ensureHead(ctx))
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
	if _, exists := awserr.ConditionFailed(err); exists {
		return nil
	}
	return err
}
