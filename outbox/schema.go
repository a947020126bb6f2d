package outbox

import (
	"errors"
	"fmt"
	"strings"
)

// Schema returns the statements that make the table, its index and its functions, in order. Each
// may be carried out again. In PostgreSQL the last two make Function and the trigger's function;
// see Trigger.
func (t Table) Schema(dialect Dialect) ([]string, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	t = t.withDefaults()
	if err := t.fits(dialect); err != nil {
		return nil, err
	}
	texts := []string{postgresTable, keyIndex, postgresPut, postgresRevoke, postgresTurn}
	if dialect == DialectSQLite {
		texts = []string{sqliteTable, keyIndex}
	}
	for i := range texts {
		texts[i] = t.fill(dialect, texts[i])
	}
	return texts, nil
}

var errDialect = errors.New(
	"outbox: the dialect is not known: want DialectPostgres or DialectSQLite")

// Function returns the quoted name of the SQL function that any program in PostgreSQL can call
// instead of Insert: it takes a key and data, and returns the row's id. Its callers need the right
// to execute it, which Schema revokes from public, and none on the table.
func (t Table) Function() string {
	t = t.withDefaults()
	return quote(t.schema(), "runnel_"+t.base()+"_put")
}

// Trigger returns the statement that puts a trigger on the table in PostgreSQL: programs may then
// insert rows by any statement. A statement with rows of several keys locks them in the order of
// its rows, so that two such statements may deadlock, which the database then refuses.
func (t Table) Trigger() (string, error) {
	if err := t.Validate(); err != nil {
		return "", err
	}
	return t.withDefaults().fill(DialectPostgres, postgresTrigger), nil
}

// fill replaces the words in capitals in a statement. more has further words with their texts.
func (t Table) fill(dialect Dialect, text string, more ...string) string {
	table, data, hashKey, hashText := t.quoted(dialect), string(t.Type), "", "''"
	dataText, producerText := quote(t.Data), "encode(producer, 'hex')"
	version := "xmin::text"
	keyText, noKey := fmt.Sprintf("coalesce(%s, '')", quote(t.Key)), quote(t.Key)+" is null"
	switch {
	case dialect == DialectSQLite: // where a column of text may have any value
		data = map[bool]string{true: "blob", false: "text"}[t.Type == Bytea]
		version = "''"
		producerText, noKey = "hex(producer)", fmt.Sprintf("typeof(%s) <> 'text'", quote(t.Key))
		keyText = fmt.Sprintf("iif(%s, '', %s)", noKey, quote(t.Key))
	case t.Type == JSON || t.Type == JSONB:
		dataText += "::text"
	case t.Type == Bytea: // whatever bytea_output is
		dataText = fmt.Sprintf("encode(%s, 'hex')", quote(t.Data))
	}
	if t.hasHashKey() {
		hashKey = fmt.Sprintf("\n  %s text,", quote(t.HashKey))
		hashText = fmt.Sprintf("coalesce(%s, '')", quote(t.HashKey))
	}
	words := append(more, "VERSION", version, "PRODUCERTEXT", producerText, "KEYTEXT", keyText,
		"NOKEY", noKey,
		"JOURNAL", t.related(dialect, "journal"), "LEASE", t.related(dialect, "lease"),
		"HELD", t.related(dialect, "held"), "DEAD", t.related(dialect, "dead"),
		"HASHTEXT", hashText, "DATATEXT", dataText,
		"TABLE", table, "HASHKEY", hashKey, "INDEX", quote(t.base()+"_key_id"),
		"COLUMN", strings.ReplaceAll(t.ID, "'", "''"),
		"LITERAL", strings.ReplaceAll(table, "'", "''"), "ID", quote(t.ID), "KEY", quote(t.Key),
		"DATA", quote(t.Data), "TYPE", data,
		"PUTLOCK", lockExpression("$1"), "TURNLOCK", lockExpression("new."+quote(t.Key)),
		"PUT", t.Function(), "TURN", quote(t.schema(), "runnel_"+t.base()+"_turn"),
	)
	return strings.NewReplacer(words...).Replace(text)
}

// related returns the quoted name of one of the relay's tables.
func (t Table) related(dialect Dialect, part string) string {
	name := t.base() + "_" + part
	if dialect == DialectSQLite {
		return quote(name)
	}
	return quote(t.schema(), name)
}

// lockExpression returns the number of a key's lock in SQL: see lockOf.
func lockExpression(key string) string {
	return "('x' || substr(md5('" + lockPrefix + "' || " + key + "), 1, 16))::bit(64)::bigint"
}

// The table is a queue: its rows are deleted soon. So it is vacuumed after some thousand deletions,
// whatever its size is.
const postgresTable = `create table if not exists TABLE (
  ID bigint generated always as identity primary key,
  KEY text not null,
  DATA TYPE not null,HASHKEY
  created_at timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 50000,
  autovacuum_vacuum_cost_delay = 0)`

const keyIndex = `create index if not exists INDEX on TABLE (KEY, ID)`

// The function and the trigger run with their owner's rights, since drawing an id needs the
// sequence. So their search path is fixed.
const postgresPut = `create or replace function PUT(key text, data TYPE) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare drawn bigint;
begin
  perform pg_advisory_xact_lock(PUTLOCK);
  perform pg_current_xact_id();
  insert into TABLE (KEY, DATA) values ($1, $2) returning ID into drawn;
  return drawn;
end $body$`

const postgresRevoke = `revoke all on function PUT(text, TYPE) from public`

const postgresTurn = `create or replace function TURN() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
begin
  perform pg_advisory_xact_lock(TURNLOCK);
  perform pg_current_xact_id();
  new.ID := nextval(pg_get_serial_sequence('LITERAL', 'COLUMN'));
  return new;
end $body$`

const postgresTrigger = `create or replace trigger runnel_turn before insert on TABLE
for each row execute function TURN()`

const sqliteTable = `create table if not exists TABLE (
  ID integer primary key autoincrement,
  KEY text not null,
  DATA TYPE not null,HASHKEY
  created_at text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
)`
