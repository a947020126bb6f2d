package rollup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel"
)

// RowStore is a database without transactions over several rows: it reads rows by key, and writes
// one row on the condition of its version. Its methods are safe for concurrent use, and none of
// them repeats a failed call for long: Rows does.
//
// An error wraps ErrLasting if another attempt would fail, too. After any other error of a call
// that writes, the outcome is unknown: the write may have taken effect, or may still do so.
type RowStore interface {
	// Prepare creates the table and the one of bad records where they are missing, and keeps the
	// setup with the table. It returns the error of Setup.Check if the table has another one. It is
	// called before the other methods, and again after an error.
	Prepare(ctx context.Context, setup Setup) error
	// Read returns the rows of different keys, in the order of the keys. A row that is absent has
	// the version 0. The answer has each write that ended before the call.
	Read(ctx context.Context, keys []string) ([]StoredRow, error)
	// Write writes a row in place of the one with the version over, or as a new one if over is 0.
	// It returns ErrConflict if the table has another version, or a row where none should be.
	Write(ctx context.Context, row StoredRow, over int64) error
	// KeepBad keeps a bad record under its shard and position. A record that is there already is
	// written again.
	KeepBad(ctx context.Context, bad BadRecord) error
	// String names the table, such as "table edits", for messages and in the rows of the lease
	// table. So it is the same for all workers and versions.
	String() string
}

// StoredRow is a row, and the state of its writers, by which each record counts once.
type StoredRow struct {
	Row
	// Key is the row's primary key; see RowKey.
	Key string
	// Version is raised by each write; 0: the row is absent.
	Version int64
	// Entries has, for each shard with records in the row, the position up to which the row has
	// them, as of runnel.Position.SortText. The names are the numbers of the shards.
	Entries map[string]string
	// Expires is the time from which the database may delete the row; zero for never.
	Expires time.Time
}

// BadRecord is a record that is in no row. One that would overflow a sum may be in its row all the
// same, if the row was changed between the keeping of the record and the row's write.
type BadRecord struct {
	Record *runnel.Record // as it was read
	Reason string         // one clause
}

var (
	// ErrConflict is returned by RowStore.Write if the table has another version of the row.
	ErrConflict = errors.New("another writer has changed the row")
	// ErrLasting is wrapped by errors of a store that do not pass by themselves: a right is
	// missing, or a row is damaged.
	ErrLasting = errors.New("it will not pass by itself")
	// ErrDamaged is wrapped, beside ErrLasting, by errors about a row that this package has not
	// written so.
	ErrDamaged = errors.New("the row is damaged")
	// ErrOtherSetup is wrapped, beside ErrLasting, if a table belongs to another rollup.
	ErrOtherSetup = errors.New("the table belongs to another rollup")
	// ErrRowTooLarge is returned for a row above MaxRow.
	ErrRowTooLarge = errors.New("the row is too large")
)

// Lasting wraps an error with ErrLasting. The text is that of the error.
func Lasting(err error) error { return &lastingError{err} }

type lastingError struct{ error }

func (e *lastingError) Unwrap() []error { return []error{e.error, ErrLasting} }

// Damaged returns an error about an attribute of a row that has no value, or none of its type.
func Damaged(attribute string) error {
	return Lasting(fmt.Errorf("%w: it has no valid %q", ErrDamaged, attribute))
}

// SetupKey is the key under which a store keeps the setup of a table. No row has it, since a row's
// key has no "\" before a "t".
const SetupKey = `\table`

// Setup is the purpose of a table.
type Setup struct {
	// App is the application's name. Another application reads the same records on its own, so the
	// two would find them counted already.
	App string
	// Stream is the stream's name and creation, as lease.Stream has it in text. Positions of
	// another stream have another order.
	Stream string
	// Definition has its defaults.
	Definition Definition
	// Expires says that rows have the attribute StoredRow.Expires. It may change.
	Expires bool
	// New is called before a table without a setup gets this one. Its error wraps ErrLasting if the
	// application has begun with another table: this one would begin in the middle. Nil accepts
	// each table.
	New func(context.Context) error
}

// KeptSetup is the setup that a table has, as texts. The zero value is none.
type KeptSetup struct {
	App, Stream, Definition string // as in Setup; the definition is Definition.String
}

// Agree returns nil if a table with the kept setup can be used for s. Without one the caller is to
// keep s: keep is true. read reads the kept setup. It is called again after an error of New, since
// another worker may have kept the setup meanwhile and begun.
func (s Setup) Agree(
	ctx context.Context, read func(context.Context) (KeptSetup, error),
) (keep bool, err error) {
	kept, err := read(ctx)
	if err != nil {
		return false, err
	}
	if kept == (KeptSetup{}) && s.New != nil {
		if refused := s.New(ctx); refused != nil {
			kept, err = read(ctx)
			if kept == (KeptSetup{}) || err != nil {
				return false, errors.Join(refused, err)
			}
		}
	}
	if kept == (KeptSetup{}) {
		return true, nil
	}
	return false, s.Check(kept.App, kept.Stream, kept.Definition)
}

// Check returns nil if a table with the given setup can be used for s. Otherwise the error names
// both sides of each difference. The definition is in the form of Definition.String.
func (s Setup) Check(app, stream, definition string) error {
	for _, d := range []struct{ what, has, want string }{
		{"application", app, s.App},
		{"stream", stream, s.Stream},
		{"definition", definition, s.Definition.String()},
	} {
		if d.has != d.want {
			return Lasting(fmt.Errorf("%w: its %s is %s, and this one is %s: use another table, "+
				"or the %s that it has", ErrOtherSetup, d.what, d.has, d.want, d.what))
		}
	}
	return nil
}
