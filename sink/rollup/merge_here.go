package rollup

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// Rows are merged in the program instead of the database if a column has a function of the user's,
// and for a batch that would overflow a row, to find the records that do.
//
// First the rows are inserted that are not there; an insert waits for that of another shard. Then
// the others are locked. Both are in the order of the keys, so two shards that merge here do not
// wait for each other in a circle.

// mergeHere merges rows, which are in the order of their keys.
func (r *Rollup) mergeHere(ctx context.Context, tx *sql.Tx, rows []Row) error {
	shape := r.table.is()
	added, there, err := r.claim(ctx, tx, rows)
	if err != nil {
		return err
	}
	for i := range rows {
		key := shape.keyText(&rows[i])
		if added[key] {
			continue
		}
		if err := r.cfg.Merge(there[key], &rows[i]); err != nil {
			return fmt.Errorf("%w: %w", ErrOverflow, err) // or an error of the user's function
		}
	}
	return r.replaceAll(ctx, tx, rows, there, added)
}

// claim inserts the rows that are not there and locks the others. added has the keys of the
// inserted rows, and there the other rows as they are.
func (r *Rollup) claim(
	ctx context.Context, tx *sql.Tx, rows []Row,
) (added map[string]bool, there map[string]*Row, err error) {
	there = map[string]*Row{}
	if len(rows) == 0 {
		return nil, there, nil
	}
	if added, err = r.table.insert(ctx, tx, rows); err != nil {
		return nil, nil, err
	}
	shape := r.table.is()
	var rest []Row
	for i := range rows {
		if !added[shape.keyText(&rows[i])] {
			rest = append(rest, rows[i])
		}
	}
	if len(rest) == 0 {
		return added, there, nil
	}
	locked, err := r.table.lock(ctx, tx, rest)
	if err != nil {
		return nil, nil, err
	}
	for i := range locked {
		there[shape.keyText(&locked[i])] = &locked[i]
	}
	if len(locked) != len(rest) { // some were deleted since the insert
		return nil, nil, fmt.Errorf("%d of %d rows are gone", len(rest)-len(locked), len(rest))
	}
	return added, there, nil
}

// replaceAll writes the merged rows in the order of rows.
func (r *Rollup) replaceAll(
	ctx context.Context, tx *sql.Tx, rows []Row, there map[string]*Row, added map[string]bool,
) error {
	shape := r.table.is()
	merged := make([]Row, 0, len(there))
	for i := range rows {
		if key := shape.keyText(&rows[i]); !added[key] {
			merged = append(merged, *there[key])
		}
	}
	if len(merged) == 0 {
		return nil
	}
	return r.table.replace(ctx, tx, merged)
}

// single is a record as a row of its own.
type single struct {
	at  int // its place in the batch
	row Row
}

// mergeSingly merges the batch record by record. Those that cannot be merged are bad.
func (r *Rollup) mergeSingly(
	ctx context.Context, tx *sql.Tx, batch *sqlsink.Batch,
) (written int, bad []badRecord, err error) {
	folder := r.folders.Get().(*Folder)
	defer r.folders.Put(folder)
	shape := r.table.is()
	byKey := map[string][]single{}
	var firsts []Row // of each key
	reasons := make([]error, len(batch.Records))
	for i := range batch.Records {
		folder.Reset()
		if reasons[i] = folder.Add(&batch.Records[i]); reasons[i] != nil {
			continue
		}
		row := folder.Rows()[0]
		key := shape.keyText(&row)
		if byKey[key] == nil {
			firsts = append(firsts, row)
		}
		byKey[key] = append(byKey[key], single{i, row})
	}
	slices.SortFunc(firsts, shape.compare)
	added, there, err := r.claim(ctx, tx, firsts)
	if err != nil {
		return 0, nil, err
	}
	for i := range firsts {
		key := shape.keyText(&firsts[i])
		records := byKey[key]
		if added[key] {
			there[key], records = &firsts[i], records[1:]
		}
		for _, s := range records {
			reasons[s.at] = r.cfg.Merge(there[key], &s.row)
		}
	}
	for i, reason := range reasons {
		if reason != nil {
			bad = append(bad, badRecord{&batch.Records[i], reason})
		}
	}
	return len(firsts), bad, r.replaceAll(ctx, tx, firsts, there, nil)
}
