package rollup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schema is the part of a kind of database that makes and describes tables.
type schema interface {
	is() *shape
	// exclusive makes other calls of Prepare wait until the transaction ends.
	exclusive(ctx context.Context, tx *sql.Tx) error
	// registry makes the table runnel_rollup.
	registry() string
	// describe returns the table; nil if it is not there.
	describe(ctx context.Context, tx *sql.Tx) (*described, error)
	// create makes the table; createBad that of the bad records, if it is not there.
	create() string
	createBad() string
	// typeOf returns the database's word for a kind.
	typeOf(k kind) string
	// notNull says how to make a column not null.
	notNull(c cell) string
}

// described is a table as the database has it.
type described struct {
	name    string // the same whatever the caller calls it
	columns map[string]describedColumn
	unique  [][]string // the columns of each unique index
	loose   bool       // an integer column takes other numbers, too
}

type describedColumn struct {
	kind     kind   // "" for one that a rollup does not use
	text     string // the type, in the database's words
	required bool   // a row without a value is refused
	nullable bool
	primary  bool // it is part of the primary key
}

// Prepare makes the table of the rows, or checks that it fits, and notes in the table runnel_rollup
// which rollup fills it. It changes nothing if all is there. The error is *UnfitError if the table
// is another rollup's, if the application fills another table, if the definition has changed, or if
// an existing table has other columns.
func (r *Rollup) Prepare(ctx context.Context) error {
	if err := r.Migrate(ctx); err != nil {
		return err
	}
	// These are asked outside of the transaction, which an error would end.
	hasRegistry, hasBad := r.isThere(ctx, "runnel_rollup", "app"), r.isThere(ctx, r.table.is().bad,
		"stream, shard, position, reason, partition_key, data, arrived_at")
	tx, err := r.cfg.DB.BeginTx(ctx, r.isolation())
	if err == nil {
		if err = r.prepare(ctx, tx, hasRegistry, hasBad); err == nil {
			err = tx.Commit()
		} else {
			_ = tx.Rollback() // it has changed nothing
		}
	}
	if err != nil {
		return fmt.Errorf("rollup into table %s: %w", r.cfg.Table, err)
	}
	return nil
}

// isolation is that of the checks. By the snapshot of a higher level, which a database may have as
// its default, a call that has waited would not see what the one before it has noted.
func (r *Rollup) isolation() *sql.TxOptions {
	if r.cfg.Dialect == Postgres {
		return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	return nil
}

func (r *Rollup) prepare(ctx context.Context, tx *sql.Tx, hasRegistry, hasBad bool) error {
	if err := r.table.exclusive(ctx, tx); err != nil {
		return err
	}
	if !hasRegistry {
		if _, err := tx.ExecContext(ctx, r.table.registry()); err != nil {
			return err
		}
	}
	there, err := r.table.describe(ctx, tx)
	if err != nil {
		return err
	}
	if there != nil {
		noted, err := r.isNoted(ctx, tx, there.name)
		if err == nil {
			err = r.fits(there)
		}
		if err == nil && noted {
			err = r.makeBad(ctx, tx, hasBad)
		}
		if noted || err != nil {
			return err
		}
	}
	if err := r.isNew(ctx, tx, there != nil); err != nil {
		return err
	}
	if there == nil {
		if _, err := tx.ExecContext(ctx, r.table.create()); err != nil {
			return err
		}
		if there, err = r.table.describe(ctx, tx); err != nil {
			return err
		}
	}
	if err := r.makeBad(ctx, tx, hasBad); err != nil {
		return err
	}
	// A note that is there is of a table that was dropped.
	_, err = tx.ExecContext(ctx, "insert into runnel_rollup (table_name, app, stream, definition) "+
		"values ($1, $2, $3, $4) on conflict (table_name) do update set app = excluded.app, "+
		"stream = excluded.stream, definition = excluded.definition",
		there.name, r.cfg.App, r.cfg.Stream, r.cfg.Definition.String())
	return err
}

// makeBad makes the table of bad records, unless one that fits is there.
func (r *Rollup) makeBad(ctx context.Context, tx *sql.Tx, there bool) error {
	if there {
		return nil
	}
	_, err := tx.ExecContext(ctx, r.table.createBad())
	if err == nil {
		var none int
		err = tx.QueryRowContext(ctx, "select 1 from "+r.table.is().bad+" where stream = '' "+
			"and shard = '' and position = '' and reason = '' and arrived_at is null").Scan(&none)
	}
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return unfit("the table %s is needed for bad records, and cannot be made or used: %v; drop or "+
		"rename one that is there, or grant the right to make tables", r.table.is().bad, err)
}

// isThere reports whether a table with these columns can be read. A role needs the right to make
// tables only if one is missing.
func (r *Rollup) isThere(ctx context.Context, table, columns string) bool {
	rows, err := r.cfg.DB.QueryContext(ctx, "select "+columns+" from "+table+" where 1 = 0")
	if err != nil {
		return false
	}
	return errors.Join(rows.Err(), rows.Close()) == nil
}

// isNoted reports whether a rollup is noted for the table. The error is *UnfitError if it is not
// this one.
func (r *Rollup) isNoted(ctx context.Context, tx *sql.Tx, table string) (bool, error) {
	var app, stream, definition string
	err := tx.QueryRowContext(ctx, "select app, stream, definition from runnel_rollup "+
		"where table_name = $1", table).Scan(&app, &stream, &definition)
	own := r.cfg.Definition.String()
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case app != r.cfg.App:
		return false, unfit("table %s is filled by application %s from stream %s: application %s "+
			"would count its records again; name --app %s, or another --table", r.cfg.Table, app,
			stream, r.cfg.App, app)
	case stream != r.cfg.Stream:
		return false, unfit("table %s is filled from stream %s, not %s: name another --table and "+
			"--app", r.cfg.Table, stream, r.cfg.Stream)
	case definition != own:
		return false, unfit("table %s is filled by the definition %s, and this one is %s: name "+
			"another --table and --app, which begin with the oldest record", r.cfg.Table,
			definition, own)
	}
	return true, nil
}

// isNew returns *UnfitError if the application has begun in this database, with another table or as
// another program: this table would begin in the middle.
func (r *Rollup) isNew(ctx context.Context, tx *sql.Tx, there bool) error {
	var other string
	err := tx.QueryRowContext(ctx, "select table_name from runnel_rollup where app = $1",
		r.cfg.App).Scan(&other)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if err == nil && (there || base(other) != base(r.cfg.Table)) {
		return unfit("application %s fills table %s: in table %s it would begin in the middle; "+
			"name another --app, which begins with the oldest record", r.cfg.App, other,
			r.cfg.Table)
	}
	if err == nil {
		return unfit("table %s is not there, though application %s has filled it: a new table "+
			"would begin in the middle; restore it, or name another --app, which begins with the "+
			"oldest record", r.cfg.Table, r.cfg.App)
	}
	var began bool
	err = tx.QueryRowContext(ctx, "select exists (select 1 from runnel_position where app = $1)",
		r.cfg.App).Scan(&began)
	if err == nil && began {
		return unfit("application %s has positions in this database, of another program than a "+
			"rollup into %s, which would begin in the middle: name another --app", r.cfg.App,
			r.cfg.Table)
	}
	return err
}

// fits checks a table that somebody else has made.
func (r *Rollup) fits(there *described) error {
	var faults []string
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf(format, args...))
	}
	shape := r.table.is()
	used := map[string]bool{}
	for i, c := range shape.cells {
		used[c.name] = true
		column, ok := there.columns[c.name]
		switch {
		case !ok:
			fault("it has no column %s", c.name)
		case column.kind != c.kind:
			fault("column %s is %s, and %s is wanted", c.name, column.text, r.table.typeOf(c.kind))
		case there.loose && c.op == Sum:
			fault("column %s may overflow unseen, since the table is not STRICT", c.name)
		case column.nullable && i >= shape.keys:
			fault("column %s may be null, and a null stays null whatever is merged: %s", c.name,
				r.table.notNull(c))
		case column.nullable && !column.primary:
			fault("column %s may be null, and is part of the rows' key: %s", c.name,
				r.table.notNull(c))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(there.columns)) {
		if there.columns[name].required && !used[name] {
			fault("column %s has no default, and the rollup has no value for it", name)
		}
	}
	var key []string
	for _, c := range shape.cells[:shape.keys] {
		key = append(key, c.name)
	}
	slices.Sort(key)
	isKey := func(index []string) bool {
		return slices.Equal(slices.Sorted(slices.Values(index)), key)
	}
	if !slices.ContainsFunc(there.unique, isKey) {
		fault("it has no unique index on %s", strings.Join(key, ", "))
	}
	if len(faults) > 0 {
		return unfit("table %s is there and does not fit: %s; name another --table, or drop this "+
			"one", r.cfg.Table, strings.Join(faults, "; "))
	}
	return nil
}
