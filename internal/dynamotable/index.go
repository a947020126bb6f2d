package dynamotable

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// AddIndex adds the index to the table if it lacks it, and reports whether the index can be read by
// now. It does not wait: DynamoDB fills the index of a large table for minutes, so call it again. A
// table whose capacity is provisioned gives the index the same.
func (t Table) AddIndex(ctx context.Context, api IndexAPI) (ready bool, err error) {
	found, err := t.describe(ctx)
	if err != nil {
		return false, fmt.Errorf("describe the table: %w", err)
	}
	for _, index := range found.GlobalSecondaryIndexes {
		if aws.ToString(index.IndexName) == t.Index.Name {
			return index.IndexStatus == types.IndexStatusActive ||
				index.IndexStatus == types.IndexStatusUpdating, nil
		}
	}
	create := &types.CreateGlobalSecondaryIndexAction{
		IndexName: &t.Index.Name, KeySchema: schema(t.Index.Key), Projection: keysOnly,
	}
	if p := found.ProvisionedThroughput; p != nil && aws.ToInt64(p.ReadCapacityUnits) > 0 {
		create.ProvisionedThroughput = &types.ProvisionedThroughput{
			ReadCapacityUnits: p.ReadCapacityUnits, WriteCapacityUnits: p.WriteCapacityUnits,
		}
	}
	ctx, cancel := context.WithTimeout(ctx, t.CallTimeout)
	defer cancel()
	_, err = api.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName: &t.Name, AttributeDefinitions: t.attributes(),
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: create}},
	})
	if err != nil {
		return false, fmt.Errorf("add the index %s: %w", t.Index.Name, err)
	}
	return false, nil
}
