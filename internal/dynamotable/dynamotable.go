// Package dynamotable creates DynamoDB tables and waits until they can be used. Lease tables and
// key tables use it.
package dynamotable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
)

// DynamoDBAPI is the part of the AWS SDK's DynamoDB client that this package uses.
type DynamoDBAPI interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (
		*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (
		*dynamodb.DescribeTableOutput, error)
}

// IndexAPI is DynamoDBAPI and the call that adds an index to a table.
type IndexAPI interface {
	DynamoDBAPI
	UpdateTable(context.Context, *dynamodb.UpdateTableInput, ...func(*dynamodb.Options)) (
		*dynamodb.UpdateTableOutput, error)
}

// Table is a table: its place, its name and its primary key.
type Table struct {
	DynamoDB DynamoDBAPI
	Name     string
	// Key is the attributes of the primary key: the hash key, and the range key if there is one.
	Key []Attribute
	// Index is a global secondary index that Ensure creates with a new table; nil for none.
	Index *Index
	// CallTimeout limits the time of each call.
	CallTimeout time.Duration
}

// Attribute is an attribute of a primary key.
type Attribute struct {
	Name string
	Type types.ScalarAttributeType
}

// Index is a global secondary index. It holds the keys of the items alone, of both kinds.
type Index struct {
	Name string
	// Key is the hash key, and the range key if there is one.
	Key []Attribute
}

// ErrOtherKey is returned for a table that exists and has another primary key.
var ErrOtherKey = errors.New("the table has another primary key")

var poll = retry.Backoff{Min: 10 * time.Millisecond, Max: time.Second}

// Ensure creates the table, billed on demand, if it is missing, and returns once it can be used.
// Several processes may do this at the same time.
func (t Table) Ensure(ctx context.Context) error {
	for looks := 1; ; looks++ {
		found, err := t.describe(ctx)
		switch {
		case awserr.DynamoDB.Of(err) == awserr.Missing:
			if err := t.create(ctx); err != nil {
				return fmt.Errorf("create the table: %w", err)
			}
		case err != nil:
			return fmt.Errorf("describe the table: %w", err)
		case found.TableStatus == types.TableStatusActive,
			found.TableStatus == types.TableStatusUpdating:
			return t.check(found)
		}
		if err := poll.Wait(ctx, looks); err != nil {
			return fmt.Errorf("wait for the table to be ACTIVE: %w", err)
		}
	}
}

// Exists reports whether the table exists and is not being deleted.
func (t Table) Exists(ctx context.Context) (bool, error) {
	found, err := t.describe(ctx)
	switch {
	case awserr.DynamoDB.Of(err) == awserr.Missing:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("describe the table: %w", err)
	}
	return found.TableStatus != types.TableStatusDeleting, nil
}

func (t Table) describe(ctx context.Context) (*types.TableDescription, error) {
	ctx, cancel := context.WithTimeout(ctx, t.CallTimeout)
	defer cancel()
	out, err := t.DynamoDB.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.Name})
	if err != nil {
		return nil, err
	}
	return out.Table, nil
}

func (t Table) create(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.CallTimeout)
	defer cancel()
	in := &dynamodb.CreateTableInput{
		TableName: &t.Name, BillingMode: types.BillingModePayPerRequest, KeySchema: schema(t.Key),
		AttributeDefinitions: t.attributes(),
	}
	if t.Index != nil {
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName: &t.Index.Name, KeySchema: schema(t.Index.Key), Projection: keysOnly,
		}}
	}
	_, err := t.DynamoDB.CreateTable(ctx, in)
	if awserr.TableExists(err) { // another process was first
		return nil
	}
	return err
}

var keysOnly = &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}

// attributes are the definitions of all key attributes, each once.
func (t Table) attributes() []types.AttributeDefinition {
	keys := slices.Clone(t.Key)
	if t.Index != nil {
		for _, a := range t.Index.Key {
			if !slices.Contains(keys, a) {
				keys = append(keys, a)
			}
		}
	}
	definitions := make([]types.AttributeDefinition, len(keys))
	for i, a := range keys {
		definitions[i] = types.AttributeDefinition{
			AttributeName: aws.String(a.Name), AttributeType: a.Type,
		}
	}
	return definitions
}

func schema(key []Attribute) []types.KeySchemaElement {
	kinds := []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}
	schema := make([]types.KeySchemaElement, len(key))
	for i, a := range key {
		schema[i] = types.KeySchemaElement{AttributeName: aws.String(a.Name), KeyType: kinds[i]}
	}
	return schema
}

func (t Table) check(found *types.TableDescription) error {
	same := func(a, b types.KeySchemaElement) bool {
		return aws.ToString(a.AttributeName) == aws.ToString(b.AttributeName)
	}
	if !slices.EqualFunc(found.KeySchema, schema(t.Key), same) {
		return ErrOtherKey
	}
	return nil
}
