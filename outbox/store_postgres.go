package outbox

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
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
	switch codeOf(err) {
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

// The parts of commit's statement. mine has a row if the fence is valid, and locks it, so that a
// take-over waits for the transaction. It also makes the commit durable where the database's
// default is not: a commit is durable together with all before it, and so are the rows it is about.
const (
	mineSQL = `with mine as materialized (
  select set_config('synchronous_commit', case current_setting('synchronous_commit')
    when 'off' then 'on' else current_setting('synchronous_commit') end, true)
  from LEASE where slot = 0 and part = 'epoch' and owner = $1 and epoch = $2
    and TIMELINE = $3 for share
)`
	closeSQL = `, closed as (
  delete from JOURNAL j using mine, unnest(%s::bytea[], %s::bigint[]) u(producer, number)
  where j.slot = 0 and j.producer = u.producer and j.number = u.number
)`
	openSQL = `, opened as (
  insert into JOURNAL (slot, epoch, producer, number, low, key, hash_key, ids, crc, frozen_ns,
    server_ns, boot_id, boot_ns)
  select 0, $2, u.producer, u.number, u.low, u.key, u.hash_key, u.ids::bigint[], u.crc, u.frozen_ns,
    u.server_ns, u.boot_id, u.boot_ns
  from mine, unnest(%s::bytea[], %s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::text[],
    %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::bigint[])
    u(producer, number, low, key, hash_key, ids, crc, frozen_ns, server_ns, boot_id, boot_ns)
  on conflict (slot, producer, number) do nothing
)`
	deleteSQL = `, gone as (
  delete from TABLE where ID = any(%s::bigint[]) and exists (select from mine)
)`
	holdSQL = `, holding as (
  insert into HELD as h (key, reason, ids) select u.key, u.reason, u.ids::bigint[]
  from mine, unnest(%s::text[], %s::text[], %s::text[]) u(key, reason, ids)
  on conflict (key) do update set ids = h.ids || excluded.ids
)`
	deadSQL = `, buried as (
  delete from TABLE t using mine, unnest(%s::bigint[], %s::text[]) u(id, reason) where t.ID = u.id
  returning t.*, u.reason runnel_reason
), dead as (
  insert into DEAD (id, partition_key, record_data, explicit_hash_key, reason)
  select ID, KEY, DATA, HASHTEXT, runnel_reason from buried
)`
)

func (s *postgresStore) commit(ctx context.Context, f fence, c *change) error {
	var b strings.Builder
	args := []any{f.owner, f.epoch, f.timeline}
	b.WriteString(mineSQL)
	add := func(text string, values ...any) {
		names := make([]any, len(values))
		for i, value := range values {
			args = append(args, value)
			names[i] = "$" + strconv.Itoa(len(args))
		}
		fmt.Fprintf(&b, text, names...)
	}
	if len(c.closed) > 0 {
		producers, numbers := make([][]byte, len(c.closed)), make([]int64, len(c.closed))
		for i := range c.closed {
			producers[i], numbers[i] = c.closed[i].producer[:], int64(c.closed[i].number)
		}
		add(closeSQL, producers, numbers)
	}
	if len(c.opened) > 0 {
		add(openSQL, columnsOf(c.opened)...)
	}
	if len(c.deleted) > 0 {
		add(deleteSQL, c.deleted)
	}
	if len(c.held) > 0 {
		keys, reasons := make([]string, len(c.held)), make([]string, len(c.held))
		ids := make([]string, len(c.held))
		for i, h := range c.held {
			keys[i], reasons[i], ids[i] = h.Key, text(h.Reason), arrayOf(h.IDs)
		}
		add(holdSQL, keys, reasons, ids)
	}
	if len(c.dead) > 0 {
		ids, reasons := make([]int64, len(c.dead)), make([]string, len(c.dead))
		for i, d := range c.dead {
			ids[i], reasons[i] = d.id, text(d.reason)
		}
		add(deadSQL, ids, reasons)
	}
	b.WriteString("\nselect count(*) from mine")
	var mine int
	err := s.ask(ctx, b.String(), args, &mine)
	if err == nil && mine == 0 {
		err = pgx.ErrNoRows
	}
	return s.lost(ctx, f, err)
}

// text returns a text that PostgreSQL takes.
func text(of string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(of, "\x00", ""), "\uFFFD")
}

// columnsOf returns the columns of units, in the order of openSQL.
func columnsOf(units []openUnit) []any {
	n := len(units)
	producers, keys, hashes := make([][]byte, n), make([]string, n), make([]string, n)
	numbers, lows, crcs := make([]int64, n), make([]int64, n), make([]int64, n)
	ids, boots := make([]string, n), make([]string, n)
	frozen, servers, sinceBoots := make([]int64, n), make([]int64, n), make([]int64, n)
	for i := range units {
		u := &units[i]
		producers[i], numbers[i], lows[i] = u.producer[:], int64(u.number), int64(u.low)
		keys[i], hashes[i], ids[i], crcs[i] = u.key, u.hash, arrayOf(u.ids), int64(u.crc)
		frozen[i], servers[i], boots[i], sinceBoots[i] = u.frozenNS, u.serverNS, u.bootID, u.bootNS
	}
	return []any{
		producers, numbers, lows, keys, hashes, ids, crcs, frozen, servers, boots, sinceBoots,
	}
}

const openUnitsSQL = `select PRODUCERTEXT, number, low, key, hash_key, ids, crc, frozen_ns,
  server_ns, boot_id, boot_ns from JOURNAL where slot = 0 order by epoch, number`

func (s *postgresStore) open(ctx context.Context) (units []openUnit, err error) {
	err = s.query(ctx, openUnitsSQL, nil, func(rows pgx.Rows) error {
		var u openUnit
		var producer string
		var number, low, crc int64
		err := rows.Scan(&producer, &number, &low, &u.key, &u.hash, &u.ids, &crc, &u.frozenNS,
			&u.serverNS, &u.bootID, &u.bootNS)
		if err != nil {
			return err
		}
		u.number, u.low, u.crc = uint64(number), uint64(low), uint32(crc)
		err = u.setProducer(producer)
		units = append(units, u)
		return err
	})
	return units, err
}

// rowColumns are the columns of a row. A key or data that is null is empty, and the last column
// says so.
const rowColumns = `ID, KEYTEXT, HASHTEXT, DATATEXT, NOKEY`

func (s *postgresStore) rows(ctx context.Context, ids []int64) (map[int64]row, error) {
	p, err := s.read(ctx, limits{}, "select "+rowColumns+" from TABLE where ID = any($1)", ids)
	byID := make(map[int64]row, len(p.rows))
	for _, r := range p.rows {
		byID[r.id] = r
	}
	return byID, err
}

// snapshotSQL is the snapshot's xmin and the id of the next transaction, with a colon between. The
// snapshot's own xmax will not do: it is the successor of the latest transaction that has ended,
// and open ones may be above it.
const snapshotSQL = `pg_snapshot_xmin(pg_current_snapshot())::text || ':' ||
  (pg_snapshot_xmax(pg_current_snapshot())::text::bigint
    + age(pg_snapshot_xmax(pg_current_snapshot())::xid))::text`

// The header's row has no id, the snapshot in place of the key, the top in place of the hash key,
// and whether the log is flushed in place of noKey. So they are of the same snapshot as the rows.
func (s *postgresStore) window(ctx context.Context, w window) (page, error) {
	top := "''"
	if w.top {
		top = "(select coalesce(max(ID), 0)::text from TABLE)"
	}
	where, args := conditions(w)
	text := "select null::bigint, " + snapshotSQL + ", " + top + ", null, DURABLE\n" +
		"union all (select " + rowColumns + " from TABLE " + where + ")"
	p, err := s.read(ctx, w.most, text, args...)
	p.full = p.full || len(p.rows) >= w.most.rows
	return p, err
}

// conditions returns the conditions of a window, its order and its limit.
func conditions(w window) (where string, args []any) {
	where, args = "where ID > $1", []any{w.after, w.most.rows}
	if w.most.until != 0 {
		args = append(args, w.most.until)
		where += " and ID <= $" + strconv.Itoa(len(args))
	}
	if len(w.skip) > 0 {
		args = append(args, w.skip)
		where += " and (KEY = any($" + strconv.Itoa(len(args)) + "::text[])) is not true"
	}
	return where + " order by ID limit $2::int", args
}

// secureSQL commits a record of the log, and so flushes all before it.
const secureSQL = `select count(*), pg_logical_emit_message(true, 'runnel', '')::text,
  set_config('synchronous_commit', case current_setting('synchronous_commit')
    when 'off' then 'on' else current_setting('synchronous_commit') end, true)`

func (s *postgresStore) secure(ctx context.Context) error {
	var n int
	var lsn, setting string
	return s.ask(ctx, secureSQL, nil, &n, &lsn, &setting)
}

const ofKeysSQL = `select ` + rowColumns + `
from unnest($1::text[], $2::bigint[]) u(runnel_key, runnel_from)
cross join lateral (select * from TABLE o
  where o.KEY = u.runnel_key and o.ID >= u.runnel_from UNTIL order by o.ID limit $3::int) o`

func (s *postgresStore) ofKeys(
	ctx context.Context, places []place, most limits,
) (page, error) {
	keys, since := make([]string, len(places)), make([]int64, len(places))
	for i, p := range places {
		keys[i], since[i] = p.key, p.from
	}
	until := ""
	if most.until != 0 {
		until = "and o.ID <= " + strconv.FormatInt(most.until, 10)
	}
	p, err := s.read(ctx, limits{bytes: most.bytes}, strings.ReplaceAll(ofKeysSQL, "UNTIL", until),
		keys, since, most.rows)
	i := slices.Index(keys, "")
	if i < 0 || err != nil {
		return p, err
	}
	// The null of a key is found by no comparison.
	nulls, err := s.read(ctx, limits{}, "select "+rowColumns+" from TABLE o where KEY is null and "+
		"ID >= $1 "+until+" order by ID limit $2::int", since[i], most.rows)
	p.rows = append(nulls.rows, p.rows...)
	return p, err
}

// idsSQL is a window without data.
const idsSQL = "select ID, KEYTEXT, '', null, NOKEY from TABLE "

func (s *postgresStore) ids(ctx context.Context, w window) ([]row, error) {
	where, args := conditions(w)
	p, err := s.read(ctx, limits{}, idsSQL+where, args...)
	return p.rows, err
}

// read reads rows up to the bytes of most, and the header of window.
func (s *postgresStore) read(
	ctx context.Context, most limits, text string, args ...any,
) (p page, err error) {
	bytes := 0
	err = s.query(ctx, text, args, func(rows pgx.Rows) error {
		var id *int64
		var r row
		if err := rows.Scan(&id, &r.key, &r.hash, &r.data, &r.noKey); err != nil {
			return err
		}
		if id == nil {
			return p.header(r)
		}
		if r.id, r.noData = *id, r.data == nil; s.table.Type == Bytea {
			n, err := hex.Decode(r.data, r.data)
			if err != nil {
				return err
			}
			r.data = r.data[:n]
		}
		p.rows = append(p.rows, r)
		if bytes += r.size(); most.bytes > 0 && bytes >= most.bytes {
			p.full = true
			rows.Close()
		}
		return nil
	})
	return p, err
}

// header reads the header of a window.
func (p *page) header(r row) (err error) {
	p.durable = r.noKey
	xmin, next, _ := strings.Cut(r.key, ":")
	if p.xmin, err = strconv.ParseUint(xmin, 10, 64); err != nil {
		return fmt.Errorf("read the snapshot %q: %w", r.key, err)
	}
	if p.next, err = strconv.ParseUint(next, 10, 64); err != nil {
		return fmt.Errorf("read the snapshot %q: %w", r.key, err)
	}
	if r.hash != "" {
		p.top, err = strconv.ParseInt(r.hash, 10, 64)
	}
	return err
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
  delete from TABLE t using released where t.ID = any(released.ids)
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
	// A role without the rights of pg_monitor sees its own transactions alone.
	transactionSQL = `select coalesce((
  select extract(epoch from max(clock_timestamp() - xact_start)) from pg_stat_activity
  where pid <> pg_backend_pid() and coalesce(backend_xid, backend_xmin) is not null), 0)::float`
)

func (s *postgresStore) ages(ctx context.Context) (row, transaction time.Duration, err error) {
	var oldest, longest float64
	err = s.ask(ctx, oldestSQL, nil, &oldest)
	if codeOf(err) != "" { // there is no created_at, or it is no time
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
)

// codeOf returns the code of a server's error, or "".
func codeOf(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

func (s *postgresStore) columns(ctx context.Context) (map[string]string, error) {
	types := map[string]string{}
	err := s.query(ctx, columnQuery, []any{s.table.quoted(DialectPostgres)},
		func(rows pgx.Rows) error {
			var name, of string
			err := rows.Scan(&name, &of)
			types[name] = of
			return err
		})
	if codeOf(err) == undefinedTable {
		return nil, nil
	}
	return types, err
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
