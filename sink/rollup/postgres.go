package rollup

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/internal/sqldb"
)

// statements are those of one kind of database.
type statements interface {
	// upsert merges rows into the table. They are sorted, so that two shards lock them in one
	// order.
	upsert(ctx context.Context, tx *sql.Tx, rows []Row) error
	// insert adds the rows that are not there, and returns which it has added.
	insert(ctx context.Context, tx *sql.Tx, rows []Row) (added map[string]bool, err error)
	// lock returns the rows that are there with these keys, and locks them in the order of rows.
	lock(ctx context.Context, tx *sql.Tx, rows []Row) ([]Row, error)
	// replace writes rows that are there.
	replace(ctx context.Context, tx *sql.Tx, rows []Row) error
	// keepBad adds bad records to their table.
	keepBad(ctx context.Context, tx *sql.Tx, stream string, bad []badRecord) error
	schema
}

// postgres are the statements of PostgreSQL. Rows are passed as one array for each column, so that
// a batch is one statement whatever its size. The arrays are texts, which all drivers can pass.
type postgres struct {
	of                                        *shape
	upsertSQL, insertSQL, lockSQL, replaceSQL string
}

func newPostgres(s *shape) *postgres {
	p := &postgres{of: s}
	insert := "insert into " + s.table + " as t (" + s.columns() + ") select " + s.columns() +
		" from " + p.rowsAs("u", s.cells) + ` order by u."#" on conflict`
	p.upsertSQL = insert + " (" + s.key() + ") do update set " + strings.Join(p.merges(), ", ")
	p.insertSQL = insert + " do nothing returning " + p.qualified("t", s.cells[:s.keys])
	p.lockSQL = "select " + p.qualified("t", s.cells) + " from " + p.rowsAs("u", s.cells[:s.keys]) +
		" join " + s.table + " as t on " + p.same() + ` order by u."#" for update of t`
	var sets []string
	for _, c := range s.cells[s.keys:] {
		sets = append(sets, quote(c.name)+" = u."+quote(c.name))
	}
	p.replaceSQL = "update " + s.table + " as t set " + strings.Join(sets, ", ") + " from " +
		p.rowsAs("u", s.cells) + " where " + p.same()
	return p
}

// rowsAs returns the rows of the arguments as a table with the columns of the cells, and # for
// their order.
func (p *postgres) rowsAs(name string, cells []cell) string {
	arrays := make([]string, len(cells))
	for i, c := range cells {
		arrays[i] = fmt.Sprintf("cast(cast($%d as text) as %s[])", i+1, postgresTypes[c.kind])
	}
	return "unnest(" + strings.Join(arrays, ", ") + ") with ordinality as " + name + "(" +
		strings.Join(names(cells), ", ") + `, "#")`
}

func (p *postgres) qualified(table string, cells []cell) string {
	all := names(cells)
	for i := range all {
		all[i] = table + "." + all[i]
	}
	return strings.Join(all, ", ")
}

// same is the condition that t and u have one key.
func (p *postgres) same() string {
	all := make([]string, p.of.keys)
	for i, name := range names(p.of.cells[:p.of.keys]) {
		all[i] = "t." + name + " = u." + name
	}
	return strings.Join(all, " and ")
}

// merges returns the assignments that merge a row into the one that is there. Texts are compared by
// their bytes.
func (p *postgres) merges() []string {
	const newer = `excluded."last_order" collate "C" > t."last_order" collate "C"`
	var sets []string
	for _, c := range p.of.cells[p.of.keys:] {
		name, order := quote(c.name), ""
		if c.kind == kindText {
			order = ` collate "C"`
		}
		there, next := "t."+name, "excluded."+name
		var merged string
		switch c.op {
		case Count, Sum:
			merged = there + " + " + next
		case Min:
			merged = "least(" + there + order + ", " + next + order + ")"
		case Max:
			merged = "greatest(" + there + order + ", " + next + order + ")"
		default: // Last, and last_order itself; Own columns are not merged here
			merged = "case when " + newer + " then " + next + " else " + there + " end"
		}
		sets = append(sets, name+" = "+merged)
	}
	return sets
}

var postgresTypes = map[kind]string{
	kindInt: "bigint", kindDouble: "double precision", kindText: "text",
	kindTime: "timestamp with time zone",
}

// arrays returns the arguments: one array for each cell.
func (p *postgres) arrays(rows []Row, cells int) []any {
	all := make([]any, cells)
	var b []byte
	for i := range all {
		b = append(b[:0], '{')
		for n := range rows {
			if n > 0 {
				b = append(b, ',')
			}
			b = appendElement(b, p.of.value(&rows[n], i))
		}
		all[i] = string(append(b, '}'))
	}
	return all
}

// appendElement appends a value as an element of an array.
func appendElement(b []byte, value any) []byte {
	switch v := value.(type) {
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	case time.Time:
		b = append(b, '"')
		b = v.UTC().AppendFormat(b, bucketLayout)
		return append(b, '"')
	default:
		return appendQuoted(b, v.(string))
	}
}

func appendQuoted(b []byte, text string) []byte {
	b = append(b, '"')
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, text[i])
	}
	return append(b, '"')
}

func (p *postgres) upsert(ctx context.Context, tx *sql.Tx, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	return p.change(ctx, tx, p.upsertSQL, rows)
}

// change runs a statement that must change each of the rows.
func (p *postgres) change(ctx context.Context, tx *sql.Tx, text string, rows []Row) error {
	result, err := tx.ExecContext(ctx, text, p.arrays(rows, len(p.of.cells))...)
	if err != nil {
		return err
	}
	return changedAll(result, len(rows))
}

// changedAll returns an error if a statement has not changed all rows: the table has a trigger or a
// rule that drops them.
func changedAll(result sql.Result, rows int) error {
	n, err := result.RowsAffected()
	if err == nil && n != int64(rows) {
		err = fmt.Errorf("the table has taken %d of %d rows: a trigger or a rule of it drops "+
			"rows; remove it", n, rows)
	}
	return err
}

func (p *postgres) insert(
	ctx context.Context, tx *sql.Tx, rows []Row,
) (map[string]bool, error) {
	added := map[string]bool{}
	err := p.query(ctx, tx, p.insertSQL, p.arrays(rows, len(p.of.cells)), p.of.keys, func(r Row) {
		added[p.of.keyText(&r)] = true
	})
	return added, err
}

func (p *postgres) lock(
	ctx context.Context, tx *sql.Tx, rows []Row,
) (there []Row, err error) {
	err = p.query(ctx, tx, p.lockSQL, p.arrays(rows, p.of.keys), len(p.of.cells), func(r Row) {
		there = append(there, r)
	})
	return there, err
}

// query runs a query whose rows have the first cells.
func (p *postgres) query(
	ctx context.Context, tx *sql.Tx, text string, args []any, cells int, each func(Row),
) (err error) {
	found, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var to scanned
		if err := found.Scan(p.of.targets(&to, false)[:cells]...); err != nil {
			return err
		}
		row := to.row
		row.Bucket = row.Bucket.UTC()
		if cells == len(p.of.cells) {
			if row, err = p.of.finish(&to); err != nil {
				return err
			}
		}
		each(row)
	}
	return found.Err()
}

func (p *postgres) replace(ctx context.Context, tx *sql.Tx, rows []Row) error {
	return p.change(ctx, tx, p.replaceSQL, rows)
}

func (p *postgres) keepBad(
	ctx context.Context, tx *sql.Tx, stream string, bad []badRecord,
) error {
	columns := make([][]byte, 6)
	for i, b := range bad {
		for c, text := range []string{
			string(b.record.ShardID), b.record.Position.SortText(), badReason(b.err),
			cleaned(b.record.PartitionKey), `\x` + hex.EncodeToString(b.record.Data),
			b.record.ArrivalTime.UTC().Format(time.RFC3339Nano),
		} {
			columns[c] = append(columns[c], "{,"[min(i, 1)])
			columns[c] = appendQuoted(columns[c], text)
		}
	}
	args := []any{stream}
	for _, c := range columns {
		args = append(args, string(append(c, '}')))
	}
	_, err := tx.ExecContext(ctx, "insert into "+p.of.bad+" (stream, shard, position, reason, "+
		"partition_key, data, arrived_at) select $1, * from unnest("+
		"cast(cast($2 as text) as text[]), cast(cast($3 as text) as text[]), "+
		"cast(cast($4 as text) as text[]), "+
		"cast(cast($5 as text) as text[]), cast(cast($6 as text) as bytea[]), "+
		"cast(cast($7 as text) as timestamptz[])) on conflict do nothing", args...)
	return err
}

// outOfRange is PostgreSQL's numeric_value_out_of_range.
const outOfRange = "22003"

// overflows reports whether a sum would have left the range of its column.
func overflows(err error) bool {
	const datatype = 19 | 12<<8 // SQLITE_CONSTRAINT_DATATYPE, of a STRICT table
	var coded interface{ Code() int }
	return errors.Is(err, ErrOverflow) || sqldb.State(err) == outOfRange ||
		errors.As(err, &coded) && coded.Code() == datatype
}
