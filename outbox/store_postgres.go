package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/runnel-stream/runnel/internal/sqldb"
)

// postgresStore is the store of a PostgreSQL. Each method is one statement outside a transaction
// block, and so one transaction and one round trip: a relay that is frozen at any moment holds
// nothing open, and a pooler may give each statement another connection.
type postgresStore struct {
	pool  *pgxpool.Pool
	table Table // with its defaults
	// timeout is how long a statement may take before its connection counts as dead.
	timeout time.Duration
	// timeline is the SQL expression for the server's timeline.
	timeline string
}

// walTimeline is the timeline of the server's log. It changes with each promotion.
const walTimeline = "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"

// newPostgresStore returns the store of a table. A server without the functions of the write-ahead
// log, as some clouds have it, counts as one that never changes its timeline.
func newPostgresStore(
	ctx context.Context, pool *pgxpool.Pool, table Table, timeout time.Duration,
) (*postgresStore, error) {
	s := &postgresStore{pool: pool, table: table, timeout: timeout, timeline: walTimeline}
	var now string
	err := s.ask(ctx, "select "+walTimeline, nil, &now)
	switch sqldb.State(err) {
	case undefinedFunction, insufficientRights, notSupported:
		s.timeline, err = "''", nil
	}
	return s, err
}

// ask carries out a statement that returns one row. It prepares nothing.
func (s *postgresStore) ask(ctx context.Context, text string, args []any, to ...any) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	text = s.fill(text)
	return s.pool.QueryRow(ctx, text, append([]any{pgx.QueryExecModeExec}, args...)...).Scan(to...)
}

// query carries out a statement and calls each for every row.
func (s *postgresStore) query(
	ctx context.Context, text string, args []any, each func(pgx.Rows) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	args = append([]any{pgx.QueryExecModeExec}, args...)
	rows, err := s.pool.Query(ctx, s.fill(text), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *postgresStore) fill(text string) string {
	durable := "pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn()"
	if s.timeline != walTimeline {
		durable = "false"
	}
	return s.table.fill(DialectPostgres, text, "TIMELINE", s.timeline, "DURABLE", durable)
}

func (s *postgresStore) exec(ctx context.Context, statements []string) error {
	for _, text := range statements {
		if _, err := s.pool.Exec(ctx, text, pgx.QueryExecModeExec); err != nil {
			return fmt.Errorf("%w, in the statement: %.60s…", err, text)
		}
	}
	return nil
}

const rightsSQL = `select
  has_table_privilege(to_regclass($1::text), 'select')
    and has_table_privilege(to_regclass($1::text), 'delete'),
  coalesce(bool_and(has_table_privilege(to_regclass(t), 'select')
    and has_table_privilege(to_regclass(t), 'insert')
    and has_table_privilege(to_regclass(t), 'update')
    and has_table_privilege(to_regclass(t), 'delete')), true)
from unnest($2::text[]) t`

func (s *postgresStore) rights(ctx context.Context) error {
	name := s.table.quoted(DialectPostgres)
	own := make([]string, 0, len(ownTables))
	for _, part := range ownTables {
		own = append(own, s.table.related(DialectPostgres, part))
	}
	var table, others bool
	err := s.ask(ctx, rightsSQL, []any{name, own}, &table, &others)
	switch {
	case err != nil:
		return err
	case !table:
		return fmt.Errorf("the role has no right to read or to delete rows: grant select, delete "+
			"on %s to it", name)
	case !others:
		return fmt.Errorf("the role lacks rights on the relay's own tables: grant select, insert, "+
			"update, delete on %s to it", strings.Join(own, ", "))
	}
	return nil
}

func (*postgresStore) close() {} // it has opened nothing

// Both rows get the new epoch. A last heartbeat in the future ends a lease too: the database's
// clock was set back.
const claimSQL = `with beat as (
  update LEASE b set epoch = b.epoch + 1, owner = $1, seen = clock_timestamp()
  where b.slot = 0 and b.part = 'beat' and (b.owner in ('', $1, $2)
    or b.seen is null or abs(extract(epoch from clock_timestamp() - b.seen)) > $3)
    and exists (select from LEASE s where s.slot = 0 and s.part = 'epoch'
      and (s.stream = '' or s.stream = $4 and s.stream_created = $5))
  returning b.epoch
)
update LEASE e set epoch = beat.epoch, owner = $1, stream = $4, stream_created = $5
from beat where e.slot = 0 and e.part = 'epoch'
returning e.epoch, TIMELINE, e.inversions`

const leaseSQL = `select b.owner, e.stream, e.stream_created
from LEASE e join LEASE b on b.slot = 0 and b.part = 'beat' where e.slot = 0 and e.part = 'epoch'`

func (s *postgresStore) claim(ctx context.Context, c claim) (l lease, err error) {
	err = s.ask(ctx, claimSQL,
		[]any{c.owner, c.before, c.failover.Seconds(), c.stream, c.created},
		&l.fence.epoch, &l.fence.timeline, &l.inversions)
	switch {
	case err == nil:
		l.taken, l.fence.owner, l.owner, l.stream, l.created = true, c.owner, c.owner, c.stream,
			c.created
		return l, nil
	case !errors.Is(err, pgx.ErrNoRows):
		return l, err
	}
	return l, s.ask(ctx, leaseSQL, nil, &l.owner, &l.stream, &l.created)
}

const renewSQL = `with beat as (
  update LEASE set epoch = epoch + 1 where slot = 0 and part = 'beat' and owner = $1
    and TIMELINE = $2 returning epoch
)
update LEASE e set epoch = beat.epoch from beat where e.slot = 0 and e.part = 'epoch'
returning e.epoch`

func (s *postgresStore) renew(ctx context.Context, f fence) (fence, error) {
	err := s.ask(ctx, renewSQL, []any{f.owner, f.timeline}, &f.epoch)
	return f, s.lost(ctx, f, err)
}

// lost returns errLost or errMoved in place of the error that a statement has changed no row.
func (s *postgresStore) lost(ctx context.Context, f fence, err error) error {
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	var now string
	if err := s.ask(ctx, "select TIMELINE", nil, &now); err != nil {
		return err
	}
	if now != f.timeline {
		return errMoved
	}
	return errLost
}

const beatSQL = `update LEASE set seen = clock_timestamp(), inversions = $3
where slot = 0 and part = 'beat' and owner = $1 and TIMELINE = $2 returning 1`

func (s *postgresStore) beat(ctx context.Context, f fence, inversions int64) error {
	var one int
	err := s.ask(ctx, beatSQL, []any{f.owner, f.timeline, inversions}, &one)
	return s.lost(ctx, f, err)
}

const leaveSQL = `update LEASE set owner = '', seen = null
where slot = 0 and part = 'beat' and owner = $1 returning 1`

func (s *postgresStore) leave(ctx context.Context, f fence) error {
	var one int
	err := s.ask(ctx, leaveSQL, []any{f.owner}, &one)
	return s.lost(ctx, f, err)
}

const heldSQL = `select key, reason, ids, (extract(epoch from held_at) * 1000)::bigint from HELD
order by held_at, key`

func (s *postgresStore) held(ctx context.Context) (keys []HeldKey, err error) {
	err = s.query(ctx, heldSQL, nil, func(rows pgx.Rows) error {
		var h HeldKey
		var since int64
		err := rows.Scan(&h.Key, &h.Reason, &h.IDs, &since)
		h.Since = time.UnixMilli(since)
		keys = append(keys, h)
		return err
	})
	return keys, err
}

const (
	releaseSQL = `with released as (delete from HELD where key = $1 returning ids, reason)`
	skipSQL    = `, buried as (
  delete from TABLE t using released where t.ID = any(released.ids) and KEYTEXT = $1
  returning t.*, released.reason runnel_reason
), dead as (
  insert into DEAD (id, partition_key, record_data, explicit_hash_key, reason)
  select ID, KEY, DATA, HASHTEXT, runnel_reason from buried
)`
)

func (s *postgresStore) release(ctx context.Context, key string, skip bool) (bool, error) {
	text := releaseSQL
	if skip {
		text += skipSQL
	}
	var released int
	err := s.ask(ctx, text+" select count(*) from released", []any{key}, &released)
	return released > 0, err
}

const statusSQL = `select
  (select count(*) from (select from TABLE limit 1000000) t),
  (select count(*) from JOURNAL), (select count(*) from HELD), (select count(*) from DEAD),
  b.inversions, b.owner, coalesce(extract(epoch from clock_timestamp() - b.seen), 0)::float,
  e.stream
from LEASE e join LEASE b on b.slot = 0 and b.part = 'beat' where e.slot = 0 and e.part = 'epoch'`

func (s *postgresStore) status(ctx context.Context) (st Status, err error) {
	var seen float64
	err = s.ask(ctx, statusSQL, nil, &st.Rows, &st.Journal, &st.Held, &st.Dead, &st.Inversions,
		&st.Owner, &seen, &st.Stream)
	st.Seen = seconds(seen)
	return st, err
}

const (
	oldestSQL = `select coalesce((select extract(epoch from clock_timestamp() - created_at)
  from TABLE order by ID limit 1), 0)::float`
	// Other roles see their own transactions alone.
	transactionSQL = `select case when pg_has_role(current_user, 'pg_read_all_stats', 'usage') then
  coalesce((select extract(epoch from max(clock_timestamp() - xact_start)) from pg_stat_activity
    where pid <> pg_backend_pid() and coalesce(backend_xid, backend_xmin) is not null), 0)
  else -1 end::float`
)

func (s *postgresStore) ages(ctx context.Context) (row, transaction time.Duration, err error) {
	var oldest, longest float64
	err = s.ask(ctx, oldestSQL, nil, &oldest)
	if sqldb.State(err) != "" { // there is no created_at, or it is no time
		oldest, err = -1, nil
	}
	if err == nil {
		err = s.ask(ctx, transactionSQL, nil, &longest)
	}
	return seconds(oldest), seconds(longest), err
}

// The codes of PostgreSQL's errors (its manual, appendix A).
const (
	undefinedTable     = "42P01"
	undefinedFunction  = "42883"
	insufficientRights = "42501"
	notSupported       = "0A000"
	lockNotAvailable   = "55P03"
)

func (s *postgresStore) columns(ctx context.Context) (map[string]string, error) {
	types := map[string]string{}
	err := s.query(ctx, columnQuery, []any{s.table.quoted(DialectPostgres)},
		func(rows pgx.Rows) error {
			var name, of string
			err := rows.Scan(&name, &of)
			types[name] = of
			return err
		})
	if sqldb.State(err) == undefinedTable {
		return nil, nil
	}
	return types, err
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
