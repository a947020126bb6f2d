package keytable

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Refresh reads the changes of other processes.
func (t *Table) Refresh(ctx context.Context) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	defer t.give()
	return t.refresh(ctx)
}

// refresh reads the changes since the version of the state, or the whole table if the log does not
// reach back that far. The caller has the turn.
func (t *Table) refresh(ctx context.Context) error {
	rows, err := t.log(ctx, t.version())
	if err != nil {
		return err
	}
	if len(rows) > 0 && rows[0].version != t.version()+1 {
		return t.rescan(ctx)
	}
	for _, r := range rows {
		if err := t.advance(r.version, r.changes); err != nil {
			return err
		}
	}
	return nil
}

// logged is a row of the log.
type logged struct {
	version int64
	changes []change
}

// log reads the changes above a version.
func (t *Table) log(ctx context.Context, above int64) ([]logged, error) {
	items, err := t.query(ctx, idLog, above)
	if err != nil {
		return nil, t.wrap("read the log", err)
	}
	rows := make([]logged, len(items))
	for i, one := range items {
		if rows[i].version, err = number(one, attrN); err == nil {
			rows[i].changes, err = decodeChanges(text(one, attrChanges))
		}
		if err == nil && i > 0 && rows[i].version != rows[i-1].version+1 {
			err = fmt.Errorf("%w: version %d follows %d", ErrDamagedTable, rows[i].version,
				rows[i-1].version)
		}
		if err != nil {
			return nil, t.wrap("read the log", err)
		}
	}
	return rows, nil
}

// query returns the items of an id with an n above the given number, ascending.
func (t *Table) query(ctx context.Context, id string, above int64) ([]item, error) {
	var items []item
	var start item
	for {
		out, err := t.queryPage(ctx, id, above, start)
		if err != nil {
			return nil, err
		}
		items = append(items, out.Items...)
		if start = out.LastEvaluatedKey; len(start) == 0 {
			return items, nil
		}
	}
}

func (t *Table) queryPage(
	ctx context.Context, id string, above int64, start item,
) (*dynamodb.QueryOutput, error) {
	ctx, cancel := t.call(ctx)
	defer cancel()
	return t.cfg.DynamoDB.Query(ctx, &dynamodb.QueryInput{
		TableName: &t.cfg.Table, ConsistentRead: aws.Bool(true), ExclusiveStartKey: start,
		KeyConditionExpression: aws.String(attrID + " = :id AND " + attrN + " > :above"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":id": str(id), ":above": num(above),
		},
	})
}

// rescan reads the whole table: first the version of the head, then the rows, then the log after
// that version. A row may be of any version between the first and the last of these, so rescan
// applies the log to the rows. If the log was trimmed meanwhile, it starts again.
func (t *Table) rescan(ctx context.Context) error {
	for {
		version, err := t.head(ctx)
		if err != nil {
			return err
		}
		rows, err := t.scan(ctx)
		if err != nil {
			return err
		}
		later, err := t.log(ctx, version)
		if err != nil {
			return err
		}
		if len(later) > 0 && later[0].version != version+1 {
			continue
		}
		for _, l := range later {
			version = l.version
			for _, c := range l.changes {
				if rows[c.Name] = c.apply(rows[c.Name], version); rows[c.Name] == nil {
					delete(rows, c.Name)
				}
			}
		}
		return t.replace(version, rows)
	}
}

// head returns the version of the head, and checks the format and the space of the table.
func (t *Table) head(ctx context.Context) (int64, error) {
	ctx, cancel := t.call(ctx)
	defer cancel()
	out, err := t.cfg.DynamoDB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.cfg.Table, Key: primary(idHead, 0), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return 0, t.wrap("read the head", err)
	}
	of, err := number(out.Item, attrFormat)
	switch space := text(out.Item, attrSpace); {
	case err != nil:
		return 0, t.wrap("read the head", err)
	case of != format:
		return 0, t.wrap("open", fmt.Errorf("%w: its format is %d, and this program knows %d: "+
			"use a newer runnel", ErrUnusableTable, of, format))
	case space != t.cfg.Space.String():
		return 0, t.wrap("open", fmt.Errorf("%w: its space has %s keys, and the one asked for "+
			"has %s", ErrUnusableTable, space, t.cfg.Space))
	}
	version, err := number(out.Item, attrVersion)
	return version, t.wrap("read the head", err)
}

func (t *Table) scan(ctx context.Context) (map[string]*row, error) {
	rows := map[string]*row{}
	var start item
	for {
		out, err := t.scanPage(ctx, start)
		if err != nil {
			return nil, t.wrap("scan", err)
		}
		for _, one := range out.Items {
			name, r, named, err := decodeRow(one)
			if err != nil {
				return nil, t.wrap("scan", err)
			}
			if named {
				rows[name] = r
			}
		}
		if start = out.LastEvaluatedKey; len(start) == 0 {
			return rows, nil
		}
	}
}

func (t *Table) scanPage(ctx context.Context, start item) (*dynamodb.ScanOutput, error) {
	ctx, cancel := t.call(ctx)
	defer cancel()
	return t.cfg.DynamoDB.Scan(ctx, &dynamodb.ScanInput{
		TableName: &t.cfg.Table, ConsistentRead: aws.Bool(true), ExclusiveStartKey: start,
	})
}
