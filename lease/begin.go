package lease

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
)

// Begin settles the origin of a new table: it creates a lease with the mark that others are
// missing, or finds the lease of a worker that was first. Workers that begin at the same time call
// it with the lease of the same shard, ShardView.First, and follow the origin that the row names.
//
// The stream may be resharded meanwhile, so that two workers choose different shards. So a worker
// does the following until the first shard stays the same over one turn:
//
//  1. list the shards, to find the first one;
//  2. call Bind: an origin that it finds replaces the worker's own;
//  3. call Begin for the first shard: an origin that the row has replaces the worker's own.
//
// Shard ids grow, so the first shard only moves up. Suppose one worker is done with shard 3, and
// another one begins with shard 5. Then the first worker saw 3 as the first shard after its row was
// there, and the second one listed 5 as the first later still. So step 2 finds the row of 3, and
// the row of 5 gets the same origin. If there is no worker that is done, the largest row decides:
// every worker comes to it, or to a larger one that took its origin from there.
func (t *Table) Begin(
	ctx context.Context, first Lease, origin runnel.From,
) (bound Binding, stands Lease, err error) {
	first.Origin, first.Beginning = &origin, true
	stands, _, err = t.Create(ctx, first)
	if err != nil {
		return Binding{}, Lease{}, err
	}
	bound = Binding{Origin: origin, Synced: !stands.Beginning}
	if stands.Origin != nil {
		bound.Origin = *stands.Origin
	}
	return bound, stands, nil
}

// MarkSynced records that the leases at the origin exist. It writes the stream and the origin into
// the rows that lack them, then removes the marks of rows, and in the table of an older version
// that version's item. It changes neither owners nor counters. It may be cut off anywhere and
// called again, by several workers at once.
func (t *Table) MarkSynced(ctx context.Context, b Binding) error {
	rows, err := t.scan(ctx, true)
	if err != nil {
		return err
	}
	// A mark goes only when all other rows are written, and the mark that decides goes last.
	for _, marked := range []bool{false, true} {
		for _, l := range rows.leases {
			if l.Beginning != marked || !marked && l.Stream != "" && l.beganAt(b.Origin) {
				continue
			}
			if err := t.stamp(ctx, l, b.Origin); err != nil {
				return err
			}
		}
	}
	if rows.old == nil {
		return nil
	}
	return t.removeOldBinding(ctx)
}

func (l Lease) beganAt(origin runnel.From) bool {
	return l.Origin != nil && l.Origin.Word() == origin.Word() &&
		l.Origin.Time().Equal(origin.Time())
}

// stamp writes the stream and the origin into a row and removes its mark. A row that is gone, or
// was made for another stream since, is left to the next look.
func (t *Table) stamp(ctx context.Context, l Lease, origin runnel.From) error {
	u := &update{names: map[string]string{}, values: item{}}
	u.set(attrStream, str(t.cfg.Stream.String()))
	setOrigin(origin, u)
	u.remove(attrBeginning)
	_, err := t.annotate(ctx, l, &dynamodb.UpdateItemInput{
		ConditionExpression: aws.String("attribute_exists(" + u.name(attrKey) + ") AND " +
			"(attribute_not_exists(#runnelStream) OR #runnelStream = :runnelStream)"),
		UpdateExpression:          aws.String(u.expression()),
		ExpressionAttributeNames:  u.names,
		ExpressionAttributeValues: u.values,
	})
	if _, refused := awserr.ConditionFailed(err); err != nil && !refused {
		return t.wrap("bind", l.Key, err)
	}
	return nil
}

func (t *Table) removeOldBinding(ctx context.Context) error {
	ctx, cancel := t.call(ctx)
	defer cancel()
	_, err := t.cfg.DynamoDB.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: aws.String(t.cfg.Table), Key: t.key(oldBindingKey),
		ConditionExpression:       aws.String("#stream = :stream"),
		ExpressionAttributeNames:  map[string]string{"#stream": attrStream},
		ExpressionAttributeValues: item{":stream": str(t.cfg.Stream.String())},
	})
	if _, gone := awserr.ConditionFailed(err); err != nil && !gone {
		return t.wrap("bind", oldBindingKey, err)
	}
	return nil
}
