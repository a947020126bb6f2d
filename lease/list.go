package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runnel-stream/runnel"
)

// Skipped is a row that List left out, and why.
type Skipped struct {
	Key string // leaseKey of the row
	Err error  // it wraps ErrUnreadableRow
}

func (s Skipped) String() string { return fmt.Sprintf("%s: %v", s.Key, s.Err) }

// List reads every lease with consistent reads, in the order of their keys. It ignores rows of
// other entity types. It skips and reports rows that cannot be read, so that one of them does not
// stop a fleet. It returns a *StreamError if a row is stamped with another stream, ErrMultiStream
// for the rows of several streams, and ErrManagedByKCL3 if a row says that a KCL 3.x leader assigns
// the leases.
func (t *Table) List(ctx context.Context) ([]Lease, []Skipped, error) { return t.list(ctx, true) }

// Look is List with eventually consistent reads, for half the read units. Rows may be a moment old,
// each by another moment, so it serves to watch the others, and not to conclude that a row is
// missing.
func (t *Table) Look(ctx context.Context) ([]Lease, []Skipped, error) { return t.list(ctx, false) }

func (t *Table) list(ctx context.Context, consistent bool) ([]Lease, []Skipped, error) {
	rows, err := t.scan(ctx, consistent)
	return rows.leases, rows.skipped, err
}

// rows are the rows of a table.
type rows struct {
	leases  []Lease // in the order of their keys
	skipped []Skipped
	old     item // that of an older version; nil if there is none
}

func (t *Table) scan(ctx context.Context, consistent bool) (rows, error) {
	var (
		found rows
		start item
	)
	for {
		out, err := t.scanPage(ctx, start, consistent)
		if err != nil {
			return rows{}, t.wrap("scan", "", err)
		}
		for _, row := range out.Items {
			if err := t.sort(row, &found); err != nil {
				return rows{}, err
			}
		}
		if start = out.LastEvaluatedKey; len(start) == 0 {
			break
		}
	}
	slices.SortFunc(found.leases, func(a, b Lease) int { return cmp.Compare(a.Key, b.Key) })
	return found, nil
}

// sort adds a row to those of its kind.
func (t *Table) sort(row item, found *rows) error {
	l, err := t.read(row)
	switch {
	case text(row, attrKey) == migrationKey:
		if isNative(row) {
			return t.wrap("scan", "", ErrManagedByKCL3)
		}
	case errors.Is(err, errForeign):
		if text(row, attrEntity) == oldBindingEntity && text(row, attrKey) == oldBindingKey {
			found.old = row
		}
	case errors.Is(err, ErrMultiStream):
		return t.wrap("scan", "", err)
	case err != nil:
		found.skipped = append(found.skipped, Skipped{Key: text(row, attrKey), Err: err})
	case l.Stream != "" && t.cfg.Stream.Name != "" && l.Stream != t.cfg.Stream.String():
		return t.streamError(l.Stream)
	default:
		found.leases = append(found.leases, l)
	}
	return nil
}

func (t *Table) scanPage(
	ctx context.Context, start item, consistent bool,
) (*dynamodb.ScanOutput, error) {
	ctx, cancel := t.call(ctx)
	defer cancel()
	return t.cfg.DynamoDB.Scan(ctx, &dynamodb.ScanInput{
		TableName: aws.String(t.cfg.Table), ExclusiveStartKey: start,
		ConsistentRead: aws.Bool(consistent),
	})
}

// ByKey returns the leases by shard.
func ByKey(leases []Lease) map[runnel.ShardID]Lease {
	byKey := make(map[runnel.ShardID]Lease, len(leases))
	for _, l := range leases {
		byKey[l.Key] = l
	}
	return byKey
}
