package keytable

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/retry"
)

const (
	maxChanges = 90 // of a version: a transaction has 100 items at most (AWS, quotas)
	attempts   = 8  // of a write that fails for another reason than a race
)

// commit writes the changes that decide returns for the newest state, as the next version. If
// another process writes that version first, or the answer is lost, commit calls decide again with
// a newer state. decide then finds its own changes in the state, if they were written, and returns
// none; commit returns when there are none. decide must not block or change the state.
func (t *Table) commit(ctx context.Context, decide func(*state) ([]change, error)) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	defer t.give()
	failures := 0
	for attempt := 1; ; attempt++ {
		again, err := t.try(ctx, decide, attempt > 1)
		if !again {
			return err
		}
		if !awserr.Raced(err) {
			if failures++; failures == attempts || !retryable(err) || ctx.Err() != nil {
				return t.wrap("write", err)
			}
		}
		if err := backoff.Wait(ctx, attempt); err != nil {
			return t.wrap("write", err)
		}
	}
}

// try makes one attempt of a commit. again reports whether another attempt may help.
func (t *Table) try(
	ctx context.Context, decide func(*state) ([]change, error), refresh bool,
) (again bool, err error) {
	if refresh {
		if err := t.refresh(ctx); err != nil {
			return true, err
		}
	}
	version, changes, rows, err := t.decide(decide)
	if err != nil || len(changes) == 0 {
		return false, err
	}
	if err := t.write(ctx, version, changes, rows); err != nil {
		return true, err
	}
	return false, t.advance(version, changes)
}

// decide returns the next version, its changes, and the resulting rows; nil is a deleted row.
func (t *Table) decide(
	decide func(*state) ([]change, error),
) (version int64, changes []change, rows map[string]*row, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.mu.state
	if changes, err = decide(s); err != nil {
		return 0, nil, nil, err
	}
	version, rows = s.version+1, make(map[string]*row, len(changes))
	for _, c := range changes {
		rows[c.Name] = c.apply(s.row(c.Name), version)
	}
	return version, changes, rows, nil
}

// write writes a version in one transaction: the head, on the condition that it has the version
// before, the new row of the log, and the rows of the names.
func (t *Table) write(
	ctx context.Context, version int64, changes []change, rows map[string]*row,
) error {
	text, err := encodeChanges(changes)
	if err != nil {
		return err
	}
	entry := primary(idLog, version)
	entry[attrChanges] = str(text)
	writes := []types.TransactWriteItem{
		{Update: &types.Update{
			TableName: &t.cfg.Table, Key: primary(idHead, 0),
			UpdateExpression:         aws.String("SET #v = :new"),
			ConditionExpression:      aws.String("#v = :old"),
			ExpressionAttributeNames: map[string]string{"#v": attrVersion},
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":new": num(version), ":old": num(version - 1),
			},
		}},
		{Put: &types.Put{TableName: &t.cfg.Table, Item: entry}},
	}
	if old := version - t.cfg.logRows; old > 0 {
		writes = append(writes, t.deletion(primary(idLog, old)))
	}
	for name, r := range rows {
		if r == nil {
			writes = append(writes, t.deletion(primary(idKey+name, 0)))
			continue
		}
		writes = append(writes, types.TransactWriteItem{
			Put: &types.Put{TableName: &t.cfg.Table, Item: encodeRow(name, r)},
		})
	}
	ctx, cancel := t.call(ctx)
	defer cancel()
	_, err = t.cfg.DynamoDB.TransactWriteItems(ctx,
		&dynamodb.TransactWriteItemsInput{TransactItems: writes})
	return err
}

func (t *Table) deletion(key item) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{TableName: &t.cfg.Table, Key: key}}
}

// retryable reports whether the same call of DynamoDB may succeed a little later: after a failure
// without an answer of the API, throttling, or a fault of the server.
func retryable(err error) bool {
	return !isUnusable(err) && awserr.TransientWrite(err)
}

// isUnusable reports whether the key table itself cannot be used.
func isUnusable(err error) bool {
	return errors.Is(err, ErrDamagedTable) || errors.Is(err, ErrUnusableTable)
}

var backoff = retry.Backoff{Min: 20 * time.Millisecond, Max: time.Second}
