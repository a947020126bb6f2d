package rollup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// mergeHere merges rows in the program instead of the database: if a column has a function of the
// user's, and for a batch that would overflow a row, to find the record that does. It returns the
// rows that were written, and all bad records.
//
// First it inserts the rows that are not there; an insert waits for that of another shard. Then it
// locks the others. Both are in the order of the keys, so no two shards wait for each other.
func (r *Rollup) mergeHere(
	ctx context.Context, tx *sql.Tx, batch *sqlsink.Batch, rows []Row, bad []badRecord,
) ([]Row, []badRecord, error) {
	if len(rows) == 0 {
		return rows, bad, nil
	}
	shape := r.table.is()
	added, err := r.table.insert(ctx, tx, rows)
	if err != nil {
		return rows, bad, err
	}
	var rest []Row
	for i := range rows {
		if !added[shape.keyText(&rows[i])] {
			rest = append(rest, rows[i])
		}
	}
	if len(rest) == 0 {
		return rows, bad, nil
	}
	there, err := r.table.lock(ctx, tx, rest)
	if err != nil {
		return rows, bad, err
	}
	byKey := make(map[string]*Row, len(there))
	for i := range there {
		byKey[shape.keyText(&there[i])] = &there[i]
	}
	for i := range rest {
		into := byKey[shape.keyText(&rest[i])]
		if into == nil { // deleted since the insert
			return rows, bad, fmt.Errorf("the row %v is gone", rest[i].Keys)
		}
		if err := r.cfg.Merge(into, &rest[i]); err != nil {
			worse, err := r.singly(batch, into, shape)
			if err != nil {
				return rows, bad, err
			}
			bad = append(bad, worse...)
		}
	}
	return rows, bad, r.table.replace(ctx, tx, there)
}

// singly merges the batch's records of one row, each by itself. Those that cannot be merged are
// bad.
func (r *Rollup) singly(
	batch *sqlsink.Batch, into *Row, shape *shape,
) (bad []badRecord, err error) {
	folder, err := NewFolder(r.cfg.Definition)
	if err != nil {
		return nil, err
	}
	key := shape.keyText(into)
	for i := range batch.Records {
		record := &batch.Records[i]
		folder.Reset()
		if folder.Add(record) != nil {
			continue // it is known
		}
		row := folder.Rows()[0]
		if shape.keyText(&row) != key {
			continue
		}
		err := r.cfg.Merge(into, &row)
		if err != nil && r.cfg.Bad == StopAtBad {
			return nil, &BadRecordError{
				ShardID: batch.ShardID, Position: record.Position, Err: err,
			}
		}
		if err != nil {
			bad = append(bad, badRecord{record, errors.Join(err)})
		}
	}
	return bad, nil
}
