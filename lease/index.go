package lease

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/dynamotable"
)

// byOwner is the index by owner, as KCL 3.x makes it (LeaseOwnerToLeaseKeyIndex, keys only).
var byOwner = &dynamotable.Index{
	Name: "LeaseOwnerToLeaseKeyIndex",
	Key: []dynamotable.Attribute{
		{Name: attrOwner, Type: types.ScalarAttributeTypeS},
		{Name: attrKey, Type: types.ScalarAttributeTypeS},
	},
}

// Index adds the index by owner to the table if it lacks it, and reports whether Owned can be
// called by now. It does not wait until DynamoDB has made the index: call it again later. The error
// of a role that may not change the table comes at every call.
func (t *Table) Index(ctx context.Context) (ready bool, err error) {
	ready, err = t.table().AddIndex(ctx, t.cfg.DynamoDB)
	if err != nil {
		return false, t.wrap("index", "", err)
	}
	return ready, nil
}

// Owned returns the shards of the rows that name the worker as their owner, from the index by
// owner. The index may be a moment late, so read the row before you rely on it.
func (t *Table) Owned(ctx context.Context, worker string) ([]runnel.ShardID, error) {
	var (
		owned []runnel.ShardID
		start item
	)
	for {
		out, err := t.queryPage(ctx, worker, start)
		if err != nil {
			return nil, t.wrap("query the index of", "", err)
		}
		for _, row := range out.Items {
			owned = append(owned, runnel.ShardID(text(row, attrKey)))
		}
		if start = out.LastEvaluatedKey; len(start) == 0 {
			return owned, nil
		}
	}
}

func (t *Table) queryPage(
	ctx context.Context, worker string, start item,
) (*dynamodb.QueryOutput, error) {
	ctx, cancel := t.call(ctx)
	defer cancel()
	return t.cfg.DynamoDB.Query(ctx, &dynamodb.QueryInput{
		TableName: aws.String(t.cfg.Table), IndexName: &byOwner.Name, ExclusiveStartKey: start,
		KeyConditionExpression:    aws.String("#owner = :owner"),
		ExpressionAttributeNames:  map[string]string{"#owner": attrOwner},
		ExpressionAttributeValues: item{":owner": str(worker)},
	})
}
