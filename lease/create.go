package lease

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/awserr"
)

// Create adds a lease if the table has none for the shard, and never changes an existing one. It
// returns the lease in the table, and whether this call created it. If the new lease names an
// owner, that owner holds it, with its MaxLeases and Static.
func (t *Table) Create(ctx context.Context, l Lease) (Lease, bool, error) {
	l.Stream, l.Hold = t.cfg.Stream.String(), rand.Text()
	l.Holder = l.Owner
	answer := t.put(ctx, l)
	if answer == nil {
		return l, true, nil
	}
	row, refused := awserr.ConditionFailed(answer)
	if row == nil {
		var err error
		if row, err = t.getItem(ctx, t.cfg.Table, t.key(l.Key)); err != nil {
			return Lease{}, false, t.wrap("create", l.Key, errors.Join(answer, err))
		}
	}
	if row == nil { // not created, or created and already deleted
		if refused {
			answer = ErrLeaseLost
		}
		return Lease{}, false, t.wrap("create", l.Key, answer)
	}
	stands, err := t.read(row)
	if err != nil {
		return Lease{}, false, t.wrap("create", l.Key, err)
	}
	// A row as it was sent is ours: only the answer was lost.
	return stands, stands.standsAs(l), nil
}

func (t *Table) put(ctx context.Context, l Lease) error {
	ctx, cancel := t.call(ctx)
	defer cancel()
	_, err := t.cfg.DynamoDB.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                aws.String(t.cfg.Table),
		Item:                     encode(l),
		ConditionExpression:      aws.String("attribute_not_exists(#leaseKey)"),
		ExpressionAttributeNames: map[string]string{"#leaseKey": attrKey},
		ReturnValuesOnConditionCheckFailure: types.
			ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

// Delete removes a lease if it is as last seen. A lease that is already gone is no error.
func (t *Table) Delete(ctx context.Context, seen Lease) error {
	ctx, cancel := t.call(ctx)
	defer cancel()
	names, values := map[string]string{}, item{}
	condition := asSeen(seen, names, values)
	_, err := t.cfg.DynamoDB.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 aws.String(t.cfg.Table),
		Key:                       t.key(seen.Key),
		ConditionExpression:       aws.String(condition),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.
			ReturnValuesOnConditionCheckFailureAllOld,
	})
	row, refused := awserr.ConditionFailed(err)
	if !refused {
		if err != nil {
			err = t.wrap("delete", seen.Key, err)
		}
		return err
	}
	if row == nil {
		if row, err = t.getItem(ctx, t.cfg.Table, t.key(seen.Key)); err != nil {
			return t.wrap("delete", seen.Key, err)
		}
	}
	if row == nil {
		return nil
	}
	return t.wrap("delete", seen.Key, ErrLeaseLost)
}
