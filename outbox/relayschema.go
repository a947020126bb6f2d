package outbox

// ownTables are the ends of the names of the relay's own tables.
var ownTables = []string{"journal", "lease", "held", "dead"}

// RelaySchema returns the statements that make the relay's own tables, in order. They are named
// after the table: outbox_journal, outbox_lease, outbox_held and outbox_dead. Each may be carried
// out again.
func (t Table) RelaySchema(dialect Dialect) ([]string, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	t = t.withDefaults()
	if err := t.fits(dialect); err != nil {
		return nil, err
	}
	texts := []string{postgresJournal, postgresLease, leaseRows, postgresHeld, postgresDead}
	if dialect == DialectSQLite {
		texts = []string{sqliteJournal, sqliteLease, leaseRows, sqliteHeld, sqliteDead}
	}
	for i := range texts {
		texts[i] = t.fill(dialect, texts[i])
	}
	return texts, nil
}

// The journal has the units that are open: a unit's row is committed before the unit is first sent,
// and deleted with the unit's rows of the outbox. It has the ids of those rows in place of their
// data. Times are in nanoseconds; 0 means unknown.
const postgresJournal = `create table if not exists JOURNAL (
  slot int not null,
  epoch bigint not null,
  producer bytea not null,
  number bigint not null,
  low bigint not null,
  key text not null,
  hash_key text not null,
  ids bigint[] not null,
  crc bigint not null,
  frozen_ns bigint not null,
  server_ns bigint not null,
  boot_id text not null,
  boot_ns bigint not null,
  primary key (slot, producer, number)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 50000,
  autovacuum_vacuum_cost_delay = 0)`

// The lease has two rows. Each transaction of the relay locks the row 'epoch' for its time, and a
// take-over changes it, so that it waits for these transactions. Heartbeats change the row 'beat',
// so that they wait for nothing. slot is 0: it is there for relays that divide a table.
const postgresLease = `create table if not exists LEASE (
  slot int not null,
  part text not null check (part in ('epoch', 'beat')),
  epoch bigint not null default 0,
  owner text not null default '',
  seen timestamptz,
  stream text not null default '',
  stream_created bigint not null default 0,
  inversions bigint not null default 0,
  primary key (slot, part)
) with (fillfactor = 50)`

const leaseRows = `insert into LEASE (slot, part) values (0, 'epoch'), (0, 'beat')
on conflict do nothing`

const postgresHeld = `create table if not exists HELD (
  key text primary key,
  reason text not null,
  ids bigint[] not null,
  held_at timestamptz not null default clock_timestamp()
)`

const postgresDead = `create table if not exists DEAD (
  id bigint not null,
  partition_key text,
  record_data TYPE,
  explicit_hash_key text,
  reason text not null,
  dead_at timestamptz not null default clock_timestamp()
)`

const sqliteJournal = `create table if not exists JOURNAL (
  slot integer not null,
  epoch integer not null,
  producer blob not null,
  number integer not null,
  low integer not null,
  key text not null,
  hash_key text not null,
  ids text not null,
  crc integer not null,
  frozen_ns integer not null,
  server_ns integer not null,
  boot_id text not null,
  boot_ns integer not null,
  primary key (slot, producer, number)
)`

const sqliteLease = `create table if not exists LEASE (
  slot integer not null,
  part text not null check (part in ('epoch', 'beat')),
  epoch integer not null default 0,
  owner text not null default '',
  seen real,
  stream text not null default '',
  stream_created integer not null default 0,
  inversions integer not null default 0,
  primary key (slot, part)
)`

const sqliteHeld = `create table if not exists HELD (
  key text primary key not null,
  reason text not null,
  ids text not null,
  held_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
)`

const sqliteDead = `create table if not exists DEAD (
  id integer not null,
  partition_key text,
  record_data TYPE,
  explicit_hash_key text,
  reason text not null,
  dead_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
)`
