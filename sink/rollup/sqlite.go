package rollup

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// sqlite are the statements of SQLite. It is a library in this process, so each row is a call of
// one prepared statement. One writer at a time has the database, so nothing has to be locked.
type sqlite struct {
	of                                        *shape
	upsertSQL, insertSQL, lockSQL, replaceSQL string
}

func newSQLite(s *shape) *sqlite {
	l := &sqlite{of: s}
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(s.cells)), ", ")
	insert := "insert into " + s.table + " as t (" + s.columns() + ") values (" + marks +
		") on conflict"
	l.upsertSQL = insert + " (" + s.key() + ") do update set " + strings.Join(l.merges(), ", ")
	l.insertSQL = insert + " do nothing"
	var same, sets []string
	for _, name := range names(s.cells[:s.keys]) {
		same = append(same, name+" = ?")
	}
	for _, name := range names(s.cells[s.keys:]) {
		sets = append(sets, name+" = ?")
	}
	where := " where " + strings.Join(same, " and ")
	l.lockSQL = "select " + s.columns() + " from " + s.table + where
	l.replaceSQL = "update " + s.table + " set " + strings.Join(sets, ", ") + where
	return l
}

// merges returns the assignments that merge a row into the one that is there. Texts are compared by
// their bytes.
func (l *sqlite) merges() []string {
	const newer = `excluded."last_order" > t."last_order" collate binary`
	var sets []string
	for _, c := range l.of.cells[l.of.keys:] {
		name := quote(c.name)
		there, next := "t."+name, "excluded."+name
		var merged string
		switch c.op {
		case Count, Sum:
			merged = there + " + " + next
			if c.kind == kindDouble { // SQLite has infinities; a STRICT column refuses this text
				merged = "case when abs(" + merged + ") <= 1.7976931348623157e308 then " + merged +
					" else 'overflow' end"
			}
		case Min:
			merged = "case when " + next + " < " + there + " collate binary then " + next +
				" else " + there + " end"
		case Max:
			merged = "case when " + next + " > " + there + " collate binary then " + next +
				" else " + there + " end"
		default: // Last, and last_order itself; Own columns are not merged here
			merged = "case when " + newer + " then " + next + " else " + there + " end"
		}
		sets = append(sets, name+" = "+merged)
	}
	return sets
}

// values returns the cells from to to of a row, as SQLite has them.
func (l *sqlite) values(row *Row, from, to int) []any {
	all := make([]any, 0, len(l.of.cells))
	for i := from; i < to; i++ {
		v := l.of.value(row, i)
		if at, ok := v.(time.Time); ok {
			v = at.UTC().Format(bucketLayout)
		}
		all = append(all, v)
	}
	return all
}

// each runs a statement for each row.
func (l *sqlite) each(
	ctx context.Context, tx *sql.Tx, text string, rows []Row, args func(*Row) []any,
	done func(*Row, sql.Result) error,
) (err error) {
	statement, err := tx.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, statement.Close()) }()
	for i := range rows {
		result, err := statement.ExecContext(ctx, args(&rows[i])...)
		if err == nil {
			err = done(&rows[i], result)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func changedOne(_ *Row, result sql.Result) error { return changedAll(result, 1) }

func (l *sqlite) all(row *Row) []any { return l.values(row, 0, len(l.of.cells)) }

func (l *sqlite) upsert(ctx context.Context, tx *sql.Tx, rows []Row) error {
	return l.each(ctx, tx, l.upsertSQL, rows, l.all, changedOne)
}

func (l *sqlite) insert(ctx context.Context, tx *sql.Tx, rows []Row) (map[string]bool, error) {
	added := map[string]bool{}
	return added, l.each(ctx, tx, l.insertSQL, rows, l.all, func(r *Row, done sql.Result) error {
		n, err := done.RowsAffected()
		if n > 0 {
			added[l.of.keyText(r)] = true
		}
		return err
	})
}

func (l *sqlite) lock(ctx context.Context, tx *sql.Tx, rows []Row) (there []Row, err error) {
	statement, err := tx.PrepareContext(ctx, l.lockSQL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, statement.Close()) }()
	for i := range rows {
		var to scanned
		err := statement.QueryRowContext(ctx, l.values(&rows[i], 0, l.of.keys)...).Scan(
			l.of.targets(&to, true)...)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, err
		}
		row, err := l.of.finish(&to)
		if err != nil {
			return nil, err
		}
		there = append(there, row)
	}
	return there, nil
}

func (l *sqlite) replace(ctx context.Context, tx *sql.Tx, rows []Row) error {
	return l.each(ctx, tx, l.replaceSQL, rows, func(r *Row) []any {
		return append(l.values(r, l.of.keys, len(l.of.cells)), l.values(r, 0, l.of.keys)...)
	}, changedOne)
}

func (l *sqlite) keepBad(
	ctx context.Context, tx *sql.Tx, stream string, bad []badRecord,
) error {
	for _, b := range bad {
		_, err := tx.ExecContext(ctx, "insert into "+l.of.bad+" (stream, shard, position, reason, "+
			"partition_key, data, arrived_at) values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
			stream, string(b.record.ShardID), b.record.Position.SortText(), badReason(b.err),
			cleaned(b.record.PartitionKey), append([]byte{}, b.record.Data...),
			b.record.ArrivalTime.UTC().Format(time.RFC3339Nano))
		if err != nil {
			return err
		}
	}
	return nil
}
