package outbox

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

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

// rowColumns are the columns of a row. A key or data that is null is empty, and the fifth column
// says so. The last one is the id of the transaction that has inserted or updated the row.
const rowColumns = `ID c1, KEYTEXT c2, HASHTEXT c3, DATATEXT c4, NOKEY c5, VERSION c6`

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
// whether the log is flushed in place of noKey, and the number of the table's file in place of the
// version. So they are of the same snapshot as the rows.
func (s *postgresStore) window(ctx context.Context, w window) (page, error) {
	top := "''"
	if w.top {
		top = "(select coalesce(max(ID), 0)::text from TABLE)"
	}
	where, args := conditions(w)
	text := "select null::bigint, " + snapshotSQL + ", " + top + ", null, DURABLE, " +
		"coalesce(pg_relation_filenode('LITERAL'::regclass), 0)::text\n" +
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
	if len(w.known) > 0 {
		args = append(args, w.known)
		where += " and ID <> all($" + strconv.Itoa(len(args)) + "::bigint[])"
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

const ofKeysSQL = `select o.* from unnest($1::text[], $2::bigint[]) u(runnel_key, runnel_from)
cross join lateral (select ` + rowColumns + ` from TABLE o
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
const idsSQL = "select ID, KEYTEXT, '', null, NOKEY, VERSION from TABLE "

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
		var version string
		if err := rows.Scan(&id, &r.key, &r.hash, &r.data, &r.noKey, &version); err != nil {
			return err
		}
		if id == nil {
			return p.header(r, version)
		}
		xmin, err := strconv.ParseUint(version, 10, 32)
		if err != nil {
			return err
		}
		r.version = uint32(xmin)
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
func (p *page) header(r row, file string) (err error) {
	p.durable = r.noKey
	if p.generation, err = strconv.ParseInt(file, 10, 64); err != nil {
		return fmt.Errorf("read the number of the table's file %q: %w", file, err)
	}
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
