package lease

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// Pause marks a row as paused (runnelPaused), and returns the row. It changes neither the owner nor
// the counter. The holder sees the mark in the answer to its next write, and hands out no further
// record of the shard. The mark stays over moves, restarts and the shard's end, until Resume. It
// does not concern the shard's children. Java workers preserve the mark and do not obey it.
//
// It returns ErrLeaseNotFound if there is no such row.
func (t *Table) Pause(ctx context.Context, seen Lease) (Lease, error) {
	return t.mark(ctx, "pause", seen, "SET #paused = :paused", item{":paused": num(1)})
}

// Resume removes the mark of Pause, and returns the row. A row without the mark is no error.
func (t *Table) Resume(ctx context.Context, seen Lease) (Lease, error) {
	return t.mark(ctx, "resume", seen, "REMOVE #paused", nil)
}

func (t *Table) mark(
	ctx context.Context, op string, seen Lease, expression string, values item,
) (Lease, error) {
	row, err := t.annotate(ctx, seen, &dynamodb.UpdateItemInput{
		ReturnValues:        types.ReturnValueAllNew,
		ConditionExpression: aws.String("attribute_exists(#key)"),
		UpdateExpression:    aws.String(expression),
		ExpressionAttributeNames: map[string]string{
			"#key": attrKey, "#paused": attrPaused,
		},
		ExpressionAttributeValues: values,
	})
	if _, refused := awserr.ConditionFailed(err); refused {
		err = ErrLeaseNotFound
	}
	if err != nil {
		return Lease{}, t.wrap(op, seen.Key, err)
	}
	l, err := t.read(row)
	if err != nil {
		return Lease{}, t.wrap(op, seen.Key, err)
	}
	return l, nil
}
