package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/dynamotable"
)

// States is the table of the states that are too large for a lease row: APP-RunnelState, with one
// row for each shard. Its rows have the key leaseKey, the state and its position as in a lease row
// (runnelState, runnelStateAt), and the lease's counter at the time of the write (leaseCounter).
// It is safe for concurrent use.
//
// Its rows are read only where a lease row points to them; see Lease.StateApart.
type States struct {
	leases *Table
	table  dynamotable.Table
}

// MaxStoredState is the largest state that States stores, in bytes. DynamoDB's limit for an item is
// 400 KB.
const MaxStoredState = 350 << 10

// ErrStateTooLarge is returned for a state above MaxStoredState.
var ErrStateTooLarge = errors.New("the state is too large to be stored")

// States returns the table of the larger states. It makes no call.
func (t *Table) States() *States {
	table := t.table()
	table.Name, table.Index = t.cfg.Table+"-RunnelState", nil
	return &States{leases: t, table: table}
}

// Name returns the table's name.
func (s *States) Name() string { return s.table.Name }

// Ensure creates the table if it is missing, and returns once it can be used.
func (s *States) Ensure(ctx context.Context) error {
	if err := s.table.Ensure(ctx); err != nil {
		return s.wrap("open", "", err)
	}
	return nil
}

// Put stores the state of held's reader at a position, and replaces that of a lower counter.
// Counters rise with every write to a lease, so a holder that lost its lease cannot replace the
// state of the next one: then Put returns ErrLeaseLost.
//
// The counter of a lease begins at zero again if its row was deleted and made again. The state of
// the deleted row then has a higher counter, and the lease row shows that held is the holder.
func (s *States) Put(
	ctx context.Context, held Lease, at runnel.Position, state []byte,
) error {
	if len(state) > MaxStoredState {
		return s.wrap("store", held.Key, fmt.Errorf("%w: %d bytes, at most %d", ErrStateTooLarge,
			len(state), MaxStoredState))
	}
	item := s.leases.key(held.Key)
	item[attrState] = &types.AttributeValueMemberB{Value: state}
	item[attrStateAt] = str(at.String())
	item[attrCounter] = num(held.Counter)
	const older = "attribute_not_exists(#leaseCounter) OR #leaseCounter < :counter"
	there, err := s.put(ctx, item, older, item[attrCounter])
	if there != nil {
		row, look := s.leases.Get(ctx, held.Key)
		switch {
		case errors.Is(look, ErrLeaseNotFound):
			return s.wrap("store", held.Key, ErrRowDeleted)
		case look != nil:
			return s.wrap("store", held.Key, look)
		case !row.heldAs(held):
			return s.wrap("store", held.Key, fmt.Errorf("%w: %s", ErrLeaseLost, row.holder()))
		}
		_, err = s.put(ctx, item, "#leaseCounter = :counter", there[attrCounter])
	}
	if err != nil {
		return s.wrap("store", held.Key, err)
	}
	return nil
}

// put writes a row on a condition on the counter that is there. If that refuses it, put returns the
// row that is there.
func (s *States) put(
	ctx context.Context, row item, condition string, counter types.AttributeValue,
) (item, error) {
	ctx, cancel := s.leases.call(ctx)
	defer cancel()
	_, err := s.leases.cfg.DynamoDB.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                 aws.String(s.table.Name),
		Item:                      row,
		ConditionExpression:       aws.String(condition),
		ExpressionAttributeNames:  map[string]string{"#leaseCounter": attrCounter},
		ExpressionAttributeValues: item{":counter": counter},
		ReturnValuesOnConditionCheckFailure: types.
			ReturnValuesOnConditionCheckFailureAllOld,
	})
	there, _ := awserr.ConditionFailed(err)
	return there, err
}

// Get returns a shard's state and its position; nil if there is none, or no table.
func (s *States) Get(
	ctx context.Context, id runnel.ShardID,
) (state []byte, at runnel.Position, err error) {
	row, err := s.leases.getItem(ctx, s.table.Name, s.leases.key(id))
	if err != nil && awserr.DynamoDB.Of(err) != awserr.Missing {
		return nil, runnel.Position{}, s.wrap("read", id, err)
	}
	if state, at = readState(row); state == nil {
		return nil, runnel.Position{}, nil
	}
	return state, at, nil
}

// Delete removes the state of a lease. It leaves one that was stored after the row was read, and
// one that is not there is no error.
func (s *States) Delete(ctx context.Context, l Lease) error {
	ctx, cancel := s.leases.call(ctx)
	defer cancel()
	_, err := s.leases.cfg.DynamoDB.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 aws.String(s.table.Name),
		Key:                       s.leases.key(l.Key),
		ConditionExpression:       aws.String("#leaseCounter < :next"),
		ExpressionAttributeNames:  map[string]string{"#leaseCounter": attrCounter},
		ExpressionAttributeValues: item{":next": num(l.Counter + 1)},
	})
	_, refused := awserr.ConditionFailed(err)
	if err != nil && !refused && awserr.DynamoDB.Of(err) != awserr.Missing {
		return s.wrap("delete", l.Key, err)
	}
	return nil
}

// wrap does not use ErrTableNotFound, which means the lease table.
func (s *States) wrap(op string, id runnel.ShardID, err error) error {
	if id == "" {
		return fmt.Errorf("%s: state table %s: %w", op, s.table.Name, err)
	}
	return fmt.Errorf("%s: state of %s in table %s: %w", op, id, s.table.Name, err)
}
