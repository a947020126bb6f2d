package sqlsink_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/pgtest"
	"github.com/runnel-stream/runnel/sink"
	"github.com/runnel-stream/runnel/sink/sqlsink"
	"github.com/runnel-stream/runnel/sink/sqlsink/pgxsink"
)

// database is a database with a table of effects, which has a row for each record.
type database struct {
	sqlsink.Dialect
	db     *sql.DB
	pool   *pgxpool.Pool // pgx instead of database/sql; nil for the latter
	url    string
	server *pgtest.Server // of the database alone; nil if others use it
	apps   atomic.Int64   // each target has an application of its own
}

const (
	postgresEffects = "create table effects (n bigserial primary key, app text, stream text, " +
		"shard text, position text, key text, data bytea)"
	sqliteEffects = "create table effects (n integer primary key autoincrement, app text, " +
		"stream text, shard text, position text, key text, data blob)"
	postgresEffect = "insert into effects (app, stream, shard, position, key, data) " +
		"values ($1, $2, $3, $4, $5, $6)"
	sqliteEffect = "insert into effects (app, stream, shard, position, key, data) " +
		"values (?1, ?2, ?3, ?4, ?5, ?6)"
)

// each runs a test on each kind of database and client.
func each(t *testing.T, test func(t *testing.T, d *database)) {
	eachOf(t, []string{"postgres", "pgx", "sqlite"}, test)
}

// eachPostgres runs a test with each client of PostgreSQL.
func eachPostgres(t *testing.T, test func(t *testing.T, d *database)) {
	eachOf(t, []string{"postgres", "pgx"}, test)
}

// eachSQL runs a test on each database with database/sql.
func eachSQL(t *testing.T, test func(t *testing.T, d *database)) {
	eachOf(t, []string{"postgres", "sqlite"}, test)
}

// eachOf runs a test on some kinds.
func eachOf(t *testing.T, kinds []string, test func(t *testing.T, d *database)) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			switch kind {
			case "postgres":
				test(t, postgres(t))
			case "pgx":
				test(t, withPGX(t, postgres(t)))
			case "sqlite":
				test(t, sqlite(t))
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made makes the tables of a database.
func (d *database) made(t testing.TB, effects string) *database {
	t.Helper()
	s, err := d.sink("", sqlsink.Config{})
	must(t, err)
	must(t, s.Migrate(t.Context()))
	must(t, s.Migrate(t.Context())) // it changes nothing
	_, err = d.db.ExecContext(t.Context(), effects)
	must(t, err)
	return d
}

var databases atomic.Int64

// postgres makes a database on the server that the tests share.
func postgres(t testing.TB) *database {
	t.Helper()
	server := pgtest.Shared(t).URL
	db, err := sql.Open("pgx", server)
	must(t, err)
	name := fmt.Sprint("test_", databases.Add(1))
	_, err = db.ExecContext(t.Context(), "create database "+name)
	must(t, errors.Join(err, db.Close()))
	at, err := url.Parse(server)
	must(t, err)
	at.Path = name
	return postgresAt(t, at.String())
}

// mortal starts a PostgreSQL that the test may kill.
func mortal(t testing.TB) *database {
	t.Helper()
	server := pgtest.New(t, "fsync = off", "full_page_writes = off")
	d := postgresAt(t, server.URL)
	d.server = server
	return d
}

// postgresAt opens the database of a URL and makes the tables.
func postgresAt(t testing.TB, at string) *database {
	t.Helper()
	db, err := sql.Open("pgx", at)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	d := &database{Dialect: sqlsink.Postgres(), db: db, url: at}
	return d.made(t, postgresEffects)
}

// withPGX has the sinks use pgx.
func withPGX(t testing.TB, d *database) *database {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), d.url)
	must(t, err)
	t.Cleanup(pool.Close)
	d.pool = pool
	return d
}

func sqlite(t testing.TB) *database {
	t.Helper()
	at := url.URL{Scheme: "file", Opaque: filepath.Join(t.TempDir(), "test.db")}
	at.RawQuery = url.Values{"_pragma": {
		"busy_timeout(10000)", "journal_mode(wal)", "synchronous(off)",
	}}.Encode()
	db, err := sql.Open("sqlite", at.String())
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	d := &database{Dialect: sqlsink.SQLite(), db: db, url: at.String()}
	return d.made(t, sqliteEffects)
}

func (d *database) isSQLite() bool { return d.Name == "SQLite" }

func (d *database) effect() string {
	if d.isSQLite() {
		return sqliteEffect
	}
	return postgresEffect
}

// sink returns a sink whose handler inserts an effect for each record.
func (d *database) sink(app string, cfg sqlsink.Config) (*sqlsink.Sink, error) {
	cfg = d.config(app, cfg)
	if d.pool != nil {
		cfg.DB, cfg.Handler, cfg.Dialect = nil, nil, sqlsink.Dialect{}
		return pgxsink.New(d.pool, d.pgxHandler(app), cfg)
	}
	return sqlsink.New(cfg)
}

func (d *database) config(app string, cfg sqlsink.Config) sqlsink.Config {
	if cfg.App = app; app == "" {
		cfg.App = "app"
	}
	cfg.DB, cfg.Dialect = d.db, d.Dialect
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Handler == nil {
		cfg.Handler = d.insertAll(app)
	}
	return cfg
}

func (d *database) insertAll(app string) sqlsink.Handler {
	return func(ctx context.Context, tx *sql.Tx, batch *sqlsink.Batch) error {
		for i := range batch.Records {
			if _, err := tx.ExecContext(ctx, d.effect(), effectOf(app, batch, i)...); err != nil {
				return err
			}
		}
		return nil
	}
}

func effectOf(app string, batch *sqlsink.Batch, i int) []any {
	r := &batch.Records[i]
	return []any{
		app, batch.Stream, string(batch.ShardID), r.Position.SortText(), r.PartitionKey,
		append([]byte{}, r.Data...),
	}
}

func (d *database) target() *target {
	return &target{d: d, app: fmt.Sprintf("app-%d", d.apps.Add(1)), cfg: sqlsink.Config{
		AllowGaps: true, Failover: time.Second,
	}}
}

// target is a sinktest.Gapper.
type target struct {
	d   *database
	app string
	cfg sqlsink.Config
	// wrap puts faults between the sink and the database.
	wrap func(sqlsink.Client) sqlsink.Client
}

func (t *target) NewSink() (sink.Sink, error) {
	if t.wrap == nil {
		return t.d.sink(t.app, t.cfg)
	}
	cfg := t.d.config(t.app, t.cfg)
	cfg.Client = t.wrap(sqlsink.NewClient(cfg.DB, cfg.Handler))
	cfg.DB, cfg.Handler = nil, nil
	return sqlsink.New(cfg)
}

func (t *target) Records(
	ctx context.Context, shard sink.Shard,
) (records []runnel.Record, err error) {
	text := "select position, key, data from effects where app = $1 and stream = $2 " +
		"and shard = $3 order by n"
	rows, err := t.d.db.QueryContext(ctx, text, t.app, shard.Stream, string(shard.ID))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var position string
		r := runnel.Record{ShardID: shard.ID}
		if err := rows.Scan(&position, &r.PartitionKey, &r.Data); err != nil {
			return nil, err
		}
		if r.Position, err = runnel.ParsePosition(position); err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, rows.Err()
}

// faulty is a Client whose calls fail at random: before they are carried out, or after.
type faulty struct {
	sqlsink.Client
	faults *faults
}

type faults struct {
	mu            sync.Mutex
	rng           *rand.Rand
	cut, conflict int // how many there were
}

// draw is true once in n times.
func (f *faults) draw(n int, counter *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rng.IntN(n) > 0 {
		return false
	}
	*counter++
	return true
}

// serialization is PostgreSQL's error 40001, and SQLite's BUSY.
type serialization struct{}

func (serialization) Error() string    { return "could not serialize access" }
func (serialization) SQLState() string { return "40001" }
func (serialization) Code() int        { return 5 }

func (f faulty) Begin(ctx context.Context, level sql.IsolationLevel) (sqlsink.Tx, error) {
	if f.faults.draw(30, &f.faults.cut) {
		return nil, driver.ErrBadConn
	}
	tx, err := f.Client.Begin(ctx, level)
	return faultyTx{tx, f.faults}, err
}

type faultyTx struct {
	sqlsink.Tx
	faults *faults
}

func (t faultyTx) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	n, err := t.Tx.Exec(ctx, text, args...)
	if err == nil && t.faults.draw(30, &t.faults.conflict) {
		return 0, serialization{}
	}
	return n, err
}

func (t faultyTx) Handle(ctx context.Context, batch *sqlsink.Batch) error {
	err := t.Tx.Handle(ctx, batch)
	if err == nil && t.faults.draw(20, &t.faults.conflict) {
		return fmt.Errorf("insert: %w", serialization{})
	}
	return err
}

func (t faultyTx) Commit(ctx context.Context) error {
	switch {
	case t.faults.draw(10, &t.faults.cut): // the connection ends before COMMIT arrives
		t.Rollback(ctx)
		return fmt.Errorf("write: %w", io.ErrUnexpectedEOF)
	case t.faults.draw(30, &t.faults.conflict):
		t.Rollback(ctx)
		return serialization{}
	}
	err := t.Tx.Commit(ctx)
	if err == nil && t.faults.draw(8, &t.faults.cut) { // and here its answer is lost
		return fmt.Errorf("read: %w", io.EOF)
	}
	return err
}

// gapsOf reads the gaps of a shard's row.
func (d *database) gapsOf(ctx context.Context, app string, shard sink.Shard) (string, error) {
	var gaps sql.NullString
	err := d.db.QueryRowContext(ctx, "select gap from runnel_position where app = $1 "+
		"and stream like $2 and shard = $3", app, shard.Stream+"@%", string(shard.ID)).Scan(&gaps)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return strings.TrimSpace(gaps.String), err
}
