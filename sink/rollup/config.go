package rollup

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/streamref"
	"github.com/runnel-stream/runnel/sink/sqlsink"
)

// Config configures a Rollup. The zero value of an optional field means its default.
type Config struct {
	Definition

	// DB is the database, and Dialect its kind. Required. A PostgreSQL needs the driver of pgx or
	// pq, a SQLite version 3.37 or newer.
	DB      *sql.DB
	Dialect Dialect
	// Table is the table of the rows, in PostgreSQL perhaps with its schema. Required.
	Table string
	// App is the application's name. It names the fleet's lease table as well. Required.
	App string
	// Stream is the stream's name or ARN. Required. The tables have the name.
	Stream string

	// Bad is the policy for records that cannot be folded; default SkipBad. The table of bad
	// records is named Table with "_bad" behind it.
	Bad BadPolicy

	// AllowGaps, Failover, Logger and OnRetry are as in sqlsink.Config.
	AllowGaps bool
	Failover  time.Duration       // see AllowGaps
	Logger    *slog.Logger        // see AllowGaps
	OnRetry   func(sqlsink.Retry) // see AllowGaps
	// OnCommit is called after each commit of records. It must not block. Calls come from several
	// goroutines.
	OnCommit func(Commit)
}

// Dialect is a kind of database.
type Dialect string

// The kinds of databases.
const (
	Postgres Dialect = "postgres"
	SQLite   Dialect = "sqlite"
)

// Commit describes a committed batch.
type Commit struct {
	ShardID runnel.ShardID // the shard of the records
	Records int            // bad ones included
	Rows    int            // that the records were folded into
	Bad     int            // records that went to the table of bad ones
}

// BadRecordError is returned for a bad record with the policy StopAtBad.
type BadRecordError struct {
	ShardID  runnel.ShardID  // the record's shard
	Position runnel.Position // its position there
	Err      error           // why it is bad: a *BadError
}

func (e *BadRecordError) Error() string {
	return fmt.Sprintf("the record at %s of %s stops the rollup: %v", e.Position, e.ShardID, e.Err)
}

// Unwrap returns Err.
func (e *BadRecordError) Unwrap() error { return e.Err }

// UnfitError is returned if the tables are not those of this rollup. Nothing was changed.
type UnfitError struct {
	Reason string // a sentence that names both sides and the ways out
}

func (e *UnfitError) Error() string { return e.Reason }

func unfit(format string, args ...any) error {
	return &UnfitError{Reason: fmt.Sprintf(format, args...)}
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	faults := []error{c.Definition.Validate()}
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("rollup: "+format, args...))
		}
	}
	fault(c.DB == nil, "DB is missing: want a database of database/sql")
	fault(c.Dialect != Postgres && c.Dialect != SQLite, "Dialect is %q: want Postgres or SQLite",
		c.Dialect)
	fault(c.Bad != SkipBad && c.Bad != StopAtBad, "Bad is %d: want SkipBad or StopAtBad", c.Bad)
	fault(c.App == "", "App is missing: want the application's name")
	fault(c.Stream == "", "Stream is missing: want the stream's name or ARN")
	if err := streamref.Check(c.Stream); err != nil {
		fault(true, "Stream is %q, %v", c.Stream, err)
	}
	if err := CheckTable(c.Table, c.Dialect); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// Rollup is a sink.Sink that folds each batch and merges its rows into a table, in the transaction
// that moves the shard's position. It is safe for concurrent use, and needs no closing.
type Rollup struct {
	*sqlsink.Sink
	cfg     Config
	table   statements
	own     bool      // a column is merged by the user's function
	folders sync.Pool // a folder keeps the memory of a batch's rows

	mu sync.Mutex
	// careful has the ends of batches that would overflow a row of the database.
	careful map[runnel.ShardID]runnel.Position
}

// New returns the rollup of a configuration. It does not reach the database: Prepare does.
func New(cfg Config) (*Rollup, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Definition, cfg.Stream = cfg.WithDefaults(), streamref.Name(cfg.Stream)
	if cfg.OnCommit == nil {
		cfg.OnCommit = func(Commit) {}
	}
	r := &Rollup{cfg: cfg, careful: map[runnel.ShardID]runnel.Position{}}
	r.folders.New = func() any {
		folder, _ := NewFolder(cfg.Definition) // it is valid
		return folder
	}
	for _, c := range cfg.Columns {
		r.own = r.own || c.Op == Own
	}
	dialect := sqlsink.Postgres()
	shape := newShape(cfg.Definition, cfg.Table)
	r.table = newPostgres(shape)
	if cfg.Dialect == SQLite {
		dialect, r.table = sqlsink.SQLite(), newSQLite(shape)
	}
	var err error
	r.Sink, err = sqlsink.New(sqlsink.Config{
		DB: cfg.DB, Dialect: dialect, App: cfg.App, Handler: r.handle, AllowGaps: cfg.AllowGaps,
		Failover: cfg.Failover, Logger: cfg.Logger, OnRetry: cfg.OnRetry,
	})
	return r, err
}

// handle folds a batch and merges its rows. It is a sqlsink.Handler.
func (r *Rollup) handle(ctx context.Context, tx *sql.Tx, batch *sqlsink.Batch) error {
	if r.cfg.Dialect == Postgres { // a connection may be cut off without an end
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.patience())
		defer cancel()
	}
	last := batch.Records[len(batch.Records)-1].Position
	var rows int
	var bad []badRecord
	var err error
	if r.isCareful(batch.ShardID, last) {
		rows, bad, err = r.mergeSingly(ctx, tx, batch)
	} else {
		rows, bad, err = r.mergeBatch(ctx, tx, batch)
		if overflows(err) {
			r.beCareful(batch.ShardID, last)
			if errors.Is(err, errFolding) { // before any statement
				rows, bad, err = r.mergeSingly(ctx, tx, batch)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("merge %d records into %s: %w", len(batch.Records), r.cfg.Table, err)
	}
	if len(bad) > 0 {
		if r.cfg.Bad == StopAtBad {
			return &BadRecordError{
				ShardID: batch.ShardID, Position: bad[0].record.Position, Err: bad[0].err,
			}
		}
		if err := r.table.keepBad(ctx, tx, batch.Stream, bad); err != nil {
			return fmt.Errorf("keep %d bad records: %w", len(bad), err)
		}
	}
	done := Commit{
		ShardID: batch.ShardID, Records: len(batch.Records), Rows: rows, Bad: len(bad),
	}
	batch.OnCommit = func() { r.cfg.OnCommit(done) }
	return nil
}

// patience is the time that the statements of a batch may take.
func (r *Rollup) patience() time.Duration { return 3 * cmp.Or(r.cfg.Failover, defaultFailover) }

const defaultFailover = 10 * time.Second // sqlsink's

// errFolding means that a batch overflows in memory.
var errFolding = errors.New("fold the batch")

// mergeBatch folds the batch in memory and merges the rows. The error wraps ErrOverflow, or
// overflows says so, if a record must be found that would overflow a row.
func (r *Rollup) mergeBatch(
	ctx context.Context, tx *sql.Tx, batch *sqlsink.Batch,
) (written int, bad []badRecord, err error) {
	folder := r.folders.Get().(*Folder)
	defer r.folders.Put(folder)
	folder.Reset()
	for i := range batch.Records {
		record := &batch.Records[i]
		err := folder.Add(record)
		if errors.Is(err, ErrOverflow) { // which record it is depends on the row in the database
			return 0, nil, fmt.Errorf("%w: %w", errFolding, err)
		}
		if err != nil {
			bad = append(bad, badRecord{record, err})
		}
	}
	rows := folder.Rows()
	if r.own {
		return len(rows), bad, r.mergeHere(ctx, tx, rows)
	}
	return len(rows), bad, r.table.upsert(ctx, tx, rows)
}

func (r *Rollup) beCareful(shard runnel.ShardID, last runnel.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.careful[shard] = last
}

func (r *Rollup) isCareful(shard runnel.ShardID, last runnel.Position) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.careful[shard] == last
}
