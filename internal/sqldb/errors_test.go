package sqldb_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/runnel-stream/runnel/internal/sqldb"
)

// coded is an error of SQLite as modernc has it.
type coded int

func (c coded) Error() string { return fmt.Sprint("SQLite's error ", int(c)) }
func (c coded) Code() int     { return int(c) }

// TestErrors has one error of each kind, wrapped as drivers and handlers wrap them.
func TestErrors(t *testing.T) {
	state := func(code string) error { return &pgconn.PgError{Code: code} }
	for _, c := range []struct {
		err                  error
		moment, lost, starts bool
	}{
		{err: nil},
		{err: errors.New("no such user")},
		{err: state("40001"), moment: true},
		{err: state("40P01"), moment: true},
		{err: state("42P01"), moment: true},
		{err: state("53100"), moment: true},
		{err: state("57P03"), moment: true, starts: true},
		{err: state("25P03"), moment: true},
		{err: state("55P03"), moment: true},
		{err: state("23505")},
		{err: state("22003")},
		{err: state("25P02")},
		{err: state("P0001")},
		{err: driver.ErrBadConn, lost: true, starts: true},
		{err: io.ErrUnexpectedEOF, lost: true, starts: true},
		{err: &net.OpError{Op: "read", Err: errors.New("reset")}, lost: true, starts: true},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("insert: %w", err)
		}
		if got := sqldb.Moment(err); got != c.moment {
			t.Errorf("%v: Moment is %v", err, got)
		}
		if got := sqldb.Lost(err); got != c.lost {
			t.Errorf("%v: Lost is %v", err, got)
		}
		if got := sqldb.Starting(err); got != c.starts {
			t.Errorf("%v: Starting is %v", err, got)
		}
	}
	if !sqldb.Ended(fmt.Errorf("x: %w", context.Canceled)) || sqldb.Ended(io.EOF) {
		t.Error("Ended")
	}
}

func TestErrorsOfSQLite(t *testing.T) {
	for err, want := range map[error]bool{
		coded(5): true, coded(5 | 2<<8): true, coded(13): true, coded(8 | 1<<8): true,
		coded(19): false, coded(19 | 8<<8): false, coded(20): false,
		errors.New("SQL logic error: no such table: x (1)"): true,
		errors.New("database is locked"):                    true,
		errors.New("UNIQUE constraint failed"):              false,
	} {
		if got := sqldb.MomentSQLite(fmt.Errorf("insert: %w", err)); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
