package sqlsink

import (
	"github.com/runnel-stream/runnel/internal/sqldb"
)

// Dialect is the SQL of one kind of database: Postgres, SQLite, or one of your own. Its statements
// use the tables runnel_position and runnel_dead. Arguments are passed in the order in which they
// are listed; texts are strings, states are []byte or nil.
type Dialect struct {
	// Name is the database's, for messages.
	Name string
	// Tables are the statements that make the tables; nothing changes if they are there.
	Tables []string

	// Read returns position, token, state, changes and gap of a row. Arguments: app, stream, shard.
	Read string
	// Token returns the token of a row alone: the state may be large. Arguments: app, stream,
	// shard.
	Token string
	// Insert adds a row, and changes nothing if it is there. Arguments: app, stream, shard,
	// position, token, state, changes, gap.
	Insert string
	// Move changes a row if it has the old token. A nil state, changes or gap leaves the old one.
	// Arguments: app, stream, shard, old token, then position, token, state, changes, gap.
	Move string
	// Ended changes nothing in a row that has a position, and locks it: it is a parent's, and the
	// first commit of its child needs the parent's end. Arguments: app, stream, shard, position.
	Ended string
	// Bury adds a dead letter. Arguments: app, stream, shard, position, partition key, data, error,
	// arrival (RFC 3339).
	Bury string
	// Unended returns the shards of a stream that have a row without an end. Arguments: app,
	// stream, the position of an end.
	Unended string

	// Limits begins each transaction, so that a frozen client does not hold its locks for ever; ""
	// for none. Argument: the failover time in milliseconds, as a text.
	Limits string
	// Free ends the transaction of a frozen client that has the row of a shard; "" for none. It
	// runs when Move has waited for too long, which Moment reports. Arguments: app, stream, shard,
	// the failover time in milliseconds as a text.
	Free string
	// Settle makes the database check constraints that wait for the end of the transaction; "" for
	// none.
	Settle string

	// Moment reports whether an error is about the moment, the server or the schema, and not about
	// the data: a serialization failure, a deadlock, a full disk, a missing table. The batch is
	// then repeated, and no record is blamed.
	Moment func(error) bool
}

// postgresLock has programs that begin together make the tables one after the other. Of two that
// make a table at once, "if not exists" lets one fail.
const postgresLock = "select pg_advisory_xact_lock(hashtextextended('runnel tables', 0))"

const postgresTables = `create table if not exists runnel_position (
  app text not null, stream text not null, shard text not null,
  position text not null, token text not null,
  state bytea, changes bytea, gap text,
  updated_at timestamptz not null default now(),
  primary key (app, stream, shard)
)`

const postgresDead = `create table if not exists runnel_dead (
  app text not null, stream text not null, shard text not null, position text not null,
  partition_key text not null, data bytea not null, error text not null,
  arrived_at timestamptz not null, dead_at timestamptz not null default now(),
  primary key (app, stream, shard, position)
)`

// postgresFree ends clients that have been silent within a statement, such as COPY or a result that
// they do not read: these are out of the reach of the idle timeout. The row's xmax is the
// transaction that has changed it. A row that a transaction inserts is invisible to others, so if
// there is no row, each silent client that has written to the table is ended.
const postgresFree = `select pg_terminate_backend(a.pid)
from pg_stat_activity a join pg_locks l on l.pid = a.pid and l.granted
left join runnel_position p on p.app = $1 and p.stream = $2 and p.shard = $3
where a.pid <> pg_backend_pid() and a.datname = current_database() and a.state = 'active'
and a.wait_event in ('ClientRead', 'ClientWrite')
and a.query_start < now() - cast(cast($4 as text) || ' milliseconds' as interval)
and case when p.app is not null then l.locktype = 'transactionid' and l.transactionid = p.xmax
else l.locktype = 'relation' and l.relation = cast('runnel_position' as regclass)
and l.mode = 'RowExclusiveLock' end`

// Postgres returns the dialect of PostgreSQL, from version 13 on.
func Postgres() Dialect {
	return Dialect{
		Name:   "PostgreSQL",
		Tables: []string{postgresLock, postgresTables, postgresDead},
		Read: "select position, token, state, changes, gap from runnel_position " +
			"where app = $1 and stream = $2 and shard = $3",
		Token: "select token from runnel_position " +
			"where app = $1 and stream = $2 and shard = $3",
		Insert: "insert into runnel_position (app, stream, shard, position, token, state, " +
			"changes, gap) values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing",
		Move: "update runnel_position set position = $5, token = $6, " +
			"state = coalesce($7, state), changes = coalesce($8, changes), " +
			"gap = coalesce($9, gap), updated_at = now() " +
			"where app = $1 and stream = $2 and shard = $3 and token = $4",
		Ended: "update runnel_position set position = position " +
			"where app = $1 and stream = $2 and shard = $3 and position = $4",
		Bury: "insert into runnel_dead (app, stream, shard, position, partition_key, data, " +
			"error, arrived_at) values ($1, $2, $3, $4, $5, $6, $7, " +
			"cast(cast($8 as text) as timestamptz)) on conflict do nothing",
		Unended: "select shard from runnel_position " +
			"where app = $1 and stream = $2 and position <> $3 order by shard",
		Limits: "select set_config('idle_in_transaction_session_timeout', $1, true), " +
			"set_config('lock_timeout', $1, true)",
		Free:   postgresFree,
		Settle: "set constraints all immediate",
		Moment: sqldb.Moment,
	}
}

const sqliteTables = `create table if not exists runnel_position (
  app text not null, stream text not null, shard text not null,
  position text not null, token text not null,
  state blob, changes blob, gap text,
  updated_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  primary key (app, stream, shard)
)`

const sqliteDead = `create table if not exists runnel_dead (
  app text not null, stream text not null, shard text not null, position text not null,
  partition_key text not null, data blob not null, error text not null,
  arrived_at text not null,
  dead_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  primary key (app, stream, shard, position)
)`

// SQLite returns the dialect of SQLite, from version 3.35 on. Open the database with a
// busy_timeout, since one writer at a time can write.
func SQLite() Dialect {
	return Dialect{
		Name:   "SQLite",
		Tables: []string{sqliteTables, sqliteDead},
		Read: "select position, token, state, changes, gap from runnel_position " +
			"where app = ?1 and stream = ?2 and shard = ?3",
		Token: "select token from runnel_position " +
			"where app = ?1 and stream = ?2 and shard = ?3",
		Insert: "insert into runnel_position (app, stream, shard, position, token, state, " +
			"changes, gap) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) on conflict do nothing",
		Move: "update runnel_position set position = ?5, token = ?6, " +
			"state = coalesce(?7, state), changes = coalesce(?8, changes), " +
			"gap = coalesce(?9, gap), updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') " +
			"where app = ?1 and stream = ?2 and shard = ?3 and token = ?4",
		Ended: "update runnel_position set position = position " +
			"where app = ?1 and stream = ?2 and shard = ?3 and position = ?4",
		Bury: "insert into runnel_dead (app, stream, shard, position, partition_key, data, " +
			"error, arrived_at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) on conflict do nothing",
		Unended: "select shard from runnel_position " +
			"where app = ?1 and stream = ?2 and position <> ?3 order by shard",
		Moment: sqldb.MomentSQLite,
	}
}
