package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ErrUnfit is wrapped by the errors of Check for a table that cannot be an outbox.
var ErrUnfit = errors.New("the table cannot be an outbox")

// Check reports whether a table can be an outbox, with every fault and its remedy.
func (t Table) Check(ctx context.Context, db DB) error {
	if err := t.Validate(); err != nil {
		return err
	}
	t = t.withDefaults()
	if err := t.fits(db.dialect()); err != nil {
		return err
	}
	var faults []string
	var err error
	switch db := db.(type) {
	case postgresDB:
		faults, err = t.checkPostgres(ctx, db)
	case sqliteDB:
		faults, err = t.checkSQLite(ctx, db)
	}
	if err != nil {
		return fmt.Errorf("outbox: check table %s: %w", t.Name, err)
	}
	if len(faults) > 0 {
		return fmt.Errorf("outbox: table %s: %w: %s", t.Name, ErrUnfit, strings.Join(faults, "; "))
	}
	return nil
}

// leastPostgres is the first version with pg_current_xact_id, which is from 2020.
const leastPostgres = 130000

const noTable = "there is no such table: make it by the statements of Schema"

// columnQuery lists the columns of a table by their types.
const columnQuery = `select attname, format_type(atttypid, null) from pg_attribute
where attrelid = $1::text::regclass and attnum > 0 and not attisdropped`

// cacheQuery returns the cache of the sequence that draws the values of a column; 0 if it does not
// grow for ever.
const cacheQuery = `select case when seqincrement > 0 and not seqcycle then seqcache else 0 end
from pg_sequence
where seqrelid = pg_get_serial_sequence($1::text, $2::text)::regclass`

// indexQuery reports whether an index begins with two columns.
const indexQuery = `select exists (select from pg_index i
  join pg_attribute a on a.attrelid = i.indrelid and a.attname = $2::text
  join pg_attribute b on b.attrelid = i.indrelid and b.attname = $3::text
  where i.indrelid = $1::text::regclass and i.indisvalid and i.indpred is null
    and i.indkey[0] = a.attnum and i.indkey[1] = b.attnum)`

// natureQuery returns what the table is: its kind, its persistence, whether an index makes the ids
// unique, and whether a policy, a rule or a trigger may keep a deletion from the rows.
const natureQuery = `with parts as (
  select $1::text::regclass::oid part union select relid from pg_partition_tree($1::text::regclass)
)
select c.relkind::text,
  (select max(p.relpersistence::text) from pg_class p join parts on p.oid = part),
  exists (select from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attname = $2::text
    where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null
      and i.indnkeyatts = 1 and i.indkey[0] = a.attnum),
  row_security_active(c.oid),
  exists (select from pg_rewrite r join parts on r.ev_class = part where r.ev_type = '4'),
  exists (select from pg_trigger g join parts on g.tgrelid = part where not g.tgisinternal
    and g.tgenabled <> 'D' and g.tgtype & 11 = 11)
from pg_class c where c.oid = $1::text::regclass`

// nature is the answer to natureQuery.
type nature struct {
	kind, persistence              string
	unique, policies, rule, before bool
}

// faults returns the faults of a table of this nature.
func (n nature) faults(id string) (faults []string) {
	for _, c := range []struct {
		bad  bool
		text string
	}{
		{n.kind != "r" && n.kind != "p", "it is no table: want one, and no view"},
		{n.persistence != "p", "it is unlogged or temporary: a crash empties it"},
		{!n.unique, "no unique index makes " + id + " unique: add a primary key"},
		{n.policies, "row-level security applies to this role, so that a deletion may leave " +
			"rows: use a role with bypassrls"},
		{n.rule, "it has a rule on delete, so that a deletion may leave rows: drop the rule"},
		{n.before, "it has a trigger before delete, which may keep rows: use one after delete"},
	} {
		if c.bad {
			faults = append(faults, c.text)
		}
	}
	return faults
}

func (t Table) checkPostgres(ctx context.Context, db postgresDB) (faults []string, err error) {
	ask := func(to any, text string, args ...any) {
		if err == nil {
			args = append([]any{pgx.QueryExecModeExec}, args...)
			err = db.pool.QueryRow(ctx, text, args...).Scan(to)
		}
	}
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf(format, args...))
	}
	var version int
	var encoding, client string
	var there, indexed bool
	ask(&version, "select current_setting('server_version_num')::int")
	ask(&encoding, "select current_setting('server_encoding')")
	ask(&client, "select current_setting('client_encoding')")
	ask(&there, "select to_regclass($1::text) is not null", t.quoted(DialectPostgres))
	if err != nil {
		return nil, err
	}
	if version < leastPostgres {
		fault("the server has version %d: want 13 or later", version/10000)
	}
	if encoding != "UTF8" {
		fault("the database has the encoding %s: want UTF8, in which the locks of keys are equal "+
			"for all programs", encoding)
	}
	if client != "UTF8" {
		fault("the session has the client_encoding %s: want UTF8, or data is converted", client)
	}
	if !there {
		return append(faults, noTable), nil
	}
	var is nature
	args := []any{pgx.QueryExecModeExec, t.quoted(DialectPostgres), t.ID}
	err = db.pool.QueryRow(ctx, natureQuery, args...).Scan(&is.kind, &is.persistence, &is.unique,
		&is.policies, &is.rule, &is.before)
	if err != nil {
		return nil, err
	}
	faults = append(faults, is.faults(t.ID)...)
	types, err := (&postgresStore{pool: db.pool, table: t, timeout: adminTimeout}).columns(ctx)
	if err != nil {
		return nil, err
	}
	if wrong := t.checkTypes(types, "smallint", "integer", "bigint"); len(wrong) > 0 {
		return append(faults, wrong...), nil
	}
	cache := int64(1)
	ask(&cache, cacheQuery, t.quoted(DialectPostgres), t.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
		fault("no sequence is owned by %s: want an identity column, or alter sequence … owned by",
			t.ID)
	}
	ask(&indexed, indexQuery, t.quoted(DialectPostgres), t.Key, t.ID)
	if cache == 0 {
		fault("the sequence of %s falls or begins again: want one that grows", t.ID)
	}
	if cache > 1 {
		fault("the sequence of %s has a cache of %d, so that two sessions draw ids of one key in "+
			"the wrong order: alter sequence … cache 1", t.ID, cache)
	}
	if err == nil && !indexed {
		fault("there is no index on (%s, %s): create one", t.Key, t.ID)
	}
	return faults, err
}

// checkTypes checks the columns of a table by their types.
func (t Table) checkTypes(types map[string]string, integers ...string) (faults []string) {
	data := []string{string(t.Type)}
	if t.Type == Text {
		data = append(data, "character varying")
	}
	for _, c := range []struct {
		column string
		want   []string
	}{
		{t.ID, integers},
		{t.Key, []string{"text", "character varying"}},
		{t.Data, data},
		{t.HashKey, []string{"text", "character varying"}},
	} {
		of, there := types[c.column]
		switch {
		case c.column == NoColumn:
		case !there:
			faults = append(faults, fmt.Sprintf("it has no column %s: name the right one",
				c.column))
		case !slices.Contains(c.want, of):
			faults = append(faults, fmt.Sprintf("column %s is %s: want %s", c.column, of,
				strings.Join(c.want, ", ")))
		}
	}
	return faults
}

func (t Table) checkSQLite(ctx context.Context, db sqliteDB) (faults []string, err error) {
	ask := func(to any, text string, args ...any) {
		if err == nil {
			err = db.db.QueryRowContext(ctx, text, args...).Scan(to)
		}
	}
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf(format, args...))
	}
	var made, journal string
	var synchronous int
	var indexed, keeps bool
	ask(&made, "select sql from sqlite_master where type = 'table' and name = ?", t.base())
	if errors.Is(err, sql.ErrNoRows) {
		return []string{noTable}, nil
	}
	ask(&keeps, `select exists (select 1 from sqlite_master where type = 'trigger' and tbl_name = ?
		and lower(sql) like '%before%delete%')`, t.base())
	ask(&journal, "pragma journal_mode")
	ask(&synchronous, "pragma synchronous")
	ask(&indexed, `select exists (select from_index.name from pragma_index_list(?) from_index
		join pragma_index_info(from_index.name) a on a.seqno = 0 and a.name = ?
		join pragma_index_info(from_index.name) b on b.seqno = 1 and b.name = ?)`,
		t.base(), t.Key, t.ID)
	if err != nil {
		return nil, err
	}
	types, err := (&sqliteStore{db: db.db, table: t}).columns(ctx)
	if err != nil {
		return nil, err
	}
	stored := t
	stored.Type = map[bool]DataType{true: "blob", false: "text"}[t.Type == Bytea]
	faults = stored.checkTypes(types, "integer")
	if !indexed {
		fault("there is no index on (%s, %s): create one", t.Key, t.ID)
	}
	if !strings.Contains(strings.ToLower(made), "autoincrement") {
		fault("%s is not AUTOINCREMENT, so that an id is used again after a deletion", t.ID)
	}
	if keeps {
		fault("it has a trigger before delete, which may keep rows: use one after delete")
	}
	if journal != "wal" {
		fault("the journal mode is %s: want WAL", journal)
	}
	const full = 2
	if synchronous < full {
		fault("synchronous is %d: want FULL, or a crash of the machine loses commits", synchronous)
	}
	return faults, nil
}
