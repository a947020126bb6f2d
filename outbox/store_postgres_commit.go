package outbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// The parts of commit's statement. mine has a row if the fence is valid, and locks it, so that a
// take-over waits for the transaction. It also makes the commit durable where the database's
// default is not: a commit is durable together with all before it, and so are the rows it is about.
// And it bounds the wait for a row that somebody else has locked.
const (
	mineSQL = `with mine as materialized (
  select set_config('synchronous_commit', case current_setting('synchronous_commit')
      when 'off' then 'on' else current_setting('synchronous_commit') end, true),
    set_config('lock_timeout', '500ms', true)
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
  delete from TABLE t using mine, unnest(%s::bigint[], %s::text[]) u(id, version)
  where t.ID = u.id and t.xmin::text = u.version returning 1
)`
	holdSQL = `, holding as (
  insert into HELD as h (key, reason, ids) select u.key, u.reason, u.ids::bigint[]
  from mine, unnest(%s::text[], %s::text[], %s::text[]) u(key, reason, ids)
  on conflict (key) do update set ids = h.ids || excluded.ids
)`
	deadSQL = `, buried as (
  delete from TABLE t using mine,
    unnest(%s::bigint[], %s::text[], %s::text[]) u(id, version, reason)
  where t.ID = u.id and t.xmin::text = u.version
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
	if units := c.closing(); len(units) > 0 {
		producers, numbers := make([][]byte, len(units)), make([]int64, len(units))
		for i := range units {
			producers[i], numbers[i] = units[i].producer[:], int64(units[i].number)
		}
		add(closeSQL, producers, numbers)
	}
	if len(c.opened) > 0 {
		add(openSQL, columnsOf(c.opened)...)
	}
	gone, rows := "0", c.rows()
	ids, versions := columnsOfRows(rows)
	if len(rows) > 0 {
		add(deleteSQL, ids, versions)
		gone = "(select count(*) from gone)"
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
		dead, reasons := make([]rowID, len(c.dead)), make([]string, len(c.dead))
		for i, d := range c.dead {
			dead[i], reasons[i] = d.rowID, text(d.reason)
		}
		ids, versions := columnsOfRows(dead)
		add(deadSQL, ids, versions, reasons)
	}
	b.WriteString("\nselect (select count(*) from mine), " + gone)
	var mine, deleted int
	err := s.ask(ctx, b.String(), args, &mine, &deleted)
	if err == nil && mine == 0 {
		err = pgx.ErrNoRows
	}
	if err = s.lost(ctx, f, err); err != nil || deleted == len(rows) {
		return err
	}
	return s.deleteRewritten(ctx, f, rows)
}

// deleteRewritten deletes rows that were there under another version: an ALTER TABLE that rewrites
// the table, and an UPDATE of another column, leave the record as it was. Rows whose record has
// changed are other rows. It returns errUndeletable if one of them is still there as it was.
func (s *postgresStore) deleteRewritten(ctx context.Context, f fence, rows []rowID) error {
	ids, _ := columnsOfRows(rows)
	there, err := s.rows(ctx, ids)
	if err != nil {
		return err
	}
	var rewritten []rowID
	for _, r := range rows {
		now, exists := there[r.id]
		switch {
		case !exists:
		case now.version == r.version:
			return errUndeletable
		case checksum(&now) == r.sum:
			rewritten = append(rewritten, rowID{r.id, now.version, r.sum})
		}
	}
	if len(rewritten) == 0 {
		return nil
	}
	return s.commit(ctx, f, &change{deleted: []sentRows{{rows: rewritten}}})
}

// columnsOfRows returns the ids and the versions of rows.
func columnsOfRows(rows []rowID) (ids []int64, versions []string) {
	ids, versions = make([]int64, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		ids[i], versions[i] = r.id, strconv.FormatUint(uint64(r.version), 10)
	}
	return ids, versions
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
