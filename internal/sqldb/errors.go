// Package sqldb knows the errors of PostgreSQL and SQLite, whatever the driver.
package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
)

// State returns PostgreSQL's SQLSTATE of an error, of five characters; "" if it has none.
func State(err error) string {
	var refused interface{ SQLState() string } // pgx and pq have it
	if errors.As(err, &refused) {
		return refused.SQLState()
	}
	return ""
}

// Lost reports whether an error means that the database has not answered. The statement may be done
// all the same. pgx reports a connection that has ended as "conn closed", even if COMMIT has been
// sent.
func Lost(err error) bool {
	var away net.Error
	var closed interface{ SafeToRetry() bool } // of pgx
	return State(err) == "" && (errors.As(err, &away) ||
		errors.As(err, &closed) && closed.SafeToRetry() || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed))
}

// Ended reports whether an error is that of an ended context.
func Ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// These are the errors of PostgreSQL that are about the moment, the server or the schema, and not
// about the data of a statement: classes and single codes (PostgreSQL's manual, appendix A).
var (
	momentClasses = []string{
		"08", // connection exception
		"28", // invalid authorization
		"3D", // invalid catalog name
		"40", // transaction rollback: serialization failures and deadlocks
		"42", // syntax error or access rule violation: a table that is missing, a right
		"53", // insufficient resources: disk full, too many connections
		"57", // operator intervention: the server starts or ends, a statement was cancelled
		"58", // system error
	}
	momentCodes = []string{
		"25006", // read_only_sql_transaction: the server has become a standby
		"25P03", // idle_in_transaction_session_timeout
		"25P04", // transaction_timeout
		"26000", // invalid_sql_statement_name: a pooler between
		"55006", // object_in_use
		"55P03", // lock_not_available
	}
)

// LockNotAvailable is the SQLSTATE of a lock that was not had within lock_timeout.
const LockNotAvailable = "55P03"

// Moment reports whether PostgreSQL's error is about the moment, the server or the schema. Another
// attempt may succeed, and other data of the statement would not have helped.
func Moment(err error) bool {
	state := State(err)
	return len(state) == 5 &&
		(slices.Contains(momentClasses, state[:2]) || slices.Contains(momentCodes, state))
}

// The primary result codes of SQLite (its "Result and Error Codes").
const (
	sqlitePerm     = 3
	sqliteBusy     = 5
	sqliteLocked   = 6
	sqliteNoMem    = 7
	sqliteReadOnly = 8
	sqliteIOErr    = 10
	sqliteFull     = 13
	sqliteCantOpen = 14
	sqliteProtocol = 15
	sqliteSchema   = 17
)

// MomentSQLite is Moment for SQLite.
func MomentSQLite(err error) bool {
	var coded interface{ Code() int } // modernc has it
	if errors.As(err, &coded) {
		switch coded.Code() & 0xff { // the higher bits say which
		case sqlitePerm, sqliteBusy, sqliteLocked, sqliteNoMem, sqliteReadOnly, sqliteIOErr,
			sqliteFull, sqliteCantOpen, sqliteProtocol, sqliteSchema:
			return true
		}
		return missing(err)
	}
	// Other drivers have the codes in a field, and SQLite's own texts.
	return err != nil && (strings.Contains(err.Error(), "database is locked") ||
		strings.Contains(err.Error(), "database table is locked") ||
		strings.Contains(err.Error(), "database or disk is full") || missing(err))
}

// BusySQLite reports whether another connection to the database of SQLite was in the way.
func BusySQLite(err error) bool {
	var coded interface{ Code() int }
	return errors.As(err, &coded) && coded.Code()&0xff == sqliteBusy
}

// Missing reports whether an error means that a table or a column is missing.
func Missing(err error) bool {
	state := State(err)
	return state == "42P01" || state == "42703" || missing(err)
}

// missing reports whether a table or a column is missing. SQLite has no code for it.
func missing(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "no such table") ||
		strings.Contains(err.Error(), "no such column") ||
		strings.Contains(err.Error(), "has no column named"))
}

// Starting reports whether an error says that the database does not take connections now: it cannot
// be reached, or PostgreSQL is starting or ending.
func Starting(err error) bool {
	switch State(err) {
	case "57P01", "57P02", "57P03":
		return true
	}
	return Lost(err)
}
