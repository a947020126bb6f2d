package outbox

import (
	"context"
	"crypto/md5"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/runnel-stream/runnel/keyspace"
)

// Row is a record for the outbox.
type Row struct {
	// Key is the partition key, the unit of order: 1 to 256 characters of UTF-8.
	Key string
	// HashKey is the explicit hash key in decimal, 0 to 2^128-1. Default: none.
	HashKey string
	// Data is the record's data: JSON or text, as the table has it, or any bytes.
	Data []byte
}

// Tx is a caller's transaction: PGX or SQL.
type Tx interface {
	dialect() Dialect
	exec(ctx context.Context, sql string, args ...any) error
}

// PGX returns a transaction of pgx on PostgreSQL.
func PGX(tx pgx.Tx) Tx { return pgxTx{tx} }

type pgxTx struct{ tx pgx.Tx }

func (pgxTx) dialect() Dialect { return DialectPostgres }

// exec prepares no statement, since one would outlive the transaction behind a pooler.
func (t pgxTx) exec(ctx context.Context, text string, args ...any) error {
	_, err := t.tx.Exec(ctx, text, append([]any{pgx.QueryExecModeExec}, args...)...)
	return err
}

// SQL returns a transaction of database/sql.
func SQL(tx *sql.Tx, dialect Dialect) Tx { return sqlTx{tx, dialect} }

type sqlTx struct {
	tx *sql.Tx
	of Dialect
}

func (t sqlTx) dialect() Dialect { return t.of }

func (t sqlTx) exec(ctx context.Context, text string, args ...any) error {
	_, err := t.tx.ExecContext(ctx, text, args...)
	return err
}

// lockPrefix begins the text of which a key's lock is the hash.
const lockPrefix = "runnel.outbox "

// lockOf returns the number of a key's lock: see the package's comment.
func lockOf(key string) int64 {
	sum := md5.Sum([]byte(lockPrefix + key)) //nolint:gosec // no secret depends on it
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// mostRows is the number of rows of one statement: PostgreSQL allows 65,535 parameters.
const mostRows = 1000

// Insert puts rows into the table, in the caller's transaction, with the locks that keep the order
// of their keys. The rows of one key get their ids in the given order. The locks are held until the
// transaction ends; a transaction that calls Insert several times may deadlock with another one,
// which the database then refuses.
func (t Table) Insert(ctx context.Context, tx Tx, rows ...Row) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if len(rows) == 0 {
		return nil
	}
	t = t.withDefaults()
	if err := t.fits(tx.dialect()); err != nil {
		return err
	}
	for i, row := range rows {
		if err := t.checkRow(row); err != nil {
			return fmt.Errorf("outbox: insert row %d: %w", i, err)
		}
	}
	var err error
	if tx.dialect() == DialectPostgres {
		locks := locksOf(rows)
		if len(locks) > mostKeys {
			return fmt.Errorf("outbox: insert rows of %d keys: want %d at most in a transaction, "+
				"since each takes a lock of the server", len(locks), mostKeys)
		}
		err = tx.exec(ctx, lockSQL, arrayOf(locks))
	}
	for chunk := range slices.Chunk(rows, mostRows) {
		if err == nil {
			text, args := t.insertSQL(tx.dialect(), chunk)
			err = tx.exec(ctx, text, args...)
		}
	}
	if err != nil {
		return fmt.Errorf("outbox: insert into %s: %w", t.Name, err)
	}
	return nil
}

// lockSQL takes the locks in the order of the array, and then a transaction id.
const lockSQL = "select count(held.l), pg_current_xact_id() " +
	"from (select pg_advisory_xact_lock(h) l from unnest($1::text::bigint[]) h offset 0) held"

// mostKeys bounds the locks of one Insert: a server with the usual settings has room for some 6,400
// in all (64 locks for each of 100 connections).
const mostKeys = 1000

// locksOf returns the locks of the rows' keys in order.
func locksOf(rows []Row) []int64 {
	locks := make([]int64, 0, len(rows))
	for _, row := range rows {
		locks = append(locks, lockOf(row.Key))
	}
	slices.Sort(locks)
	return slices.Compact(locks)
}

// arrayOf returns the text of an array.
func arrayOf(locks []int64) string {
	text := make([]byte, 0, 20*len(locks))
	for i, lock := range locks {
		text = append(text, "{,"[min(i, 1)])
		text = strconv.AppendInt(text, lock, 10)
	}
	return string(append(text, '}'))
}

const maxKeyCharacters = 256 // of a partition key (AWS, "PutRecordsRequestEntry")

// checkRow returns an error for a row that no stream takes, or the table.
func (t Table) checkRow(row Row) error {
	switch {
	case row.Key == "":
		return errors.New("the partition key is empty")
	case !utf8.ValidString(row.Key) || strings.ContainsRune(row.Key, 0):
		return fmt.Errorf("the partition key %.40q is not text: want UTF-8 without zeros", row.Key)
	case utf8.RuneCountInString(row.Key) > maxKeyCharacters:
		return fmt.Errorf("the partition key %.40q… has %d characters: want %d at most", row.Key,
			utf8.RuneCountInString(row.Key), maxKeyCharacters)
	case row.HashKey == "":
		return nil
	case !t.hasHashKey():
		return fmt.Errorf("it has an explicit hash key, and table %s has no column for it", t.Name)
	}
	_, err := keyspace.Parse(row.HashKey)
	return err
}

// insertSQL returns the statement for some rows, and its parameters.
func (t Table) insertSQL(dialect Dialect, rows []Row) (text string, args []any) {
	var b strings.Builder
	columns := []string{t.Key, t.Data}
	hashed := slices.ContainsFunc(rows, func(r Row) bool { return r.HashKey != "" })
	if hashed {
		columns = append(columns, t.HashKey)
	}
	b.WriteString("insert into " + t.quoted(dialect) + " (")
	for i, column := range columns {
		b.WriteString([]string{"", ", "}[min(i, 1)] + quote(column))
	}
	b.WriteString(") values ")
	parameter := func(value any, as string) {
		args = append(args, value)
		if dialect == DialectSQLite {
			b.WriteString("?")
			return
		}
		b.WriteString("$" + strconv.Itoa(len(args)) + "::" + as)
	}
	for i, row := range rows {
		b.WriteString([]string{"(", ", ("}[min(i, 1)])
		parameter(row.Key, "text")
		b.WriteString(", ")
		if t.Type == Bytea {
			parameter(append([]byte{}, row.Data...), "bytea") // nil would be null
		} else {
			parameter(string(row.Data), string(t.Type))
		}
		if hashed {
			b.WriteString(", ")
			parameter(sql.NullString{String: row.HashKey, Valid: row.HashKey != ""}, "text")
		}
		b.WriteString(")")
	}
	return b.String(), args
}
