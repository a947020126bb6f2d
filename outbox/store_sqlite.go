package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// sqliteStore is the store of a SQLite database. One writer at a time commits there, in the order
// of the ids. So a window without a row below a commit never gets one later, and a read needs no
// snapshot.
type sqliteStore struct {
	db    *sql.DB
	table Table // with its defaults

	file string      // the database's; "" for one in memory
	info os.FileInfo // of the file at the start

	watch   *sql.Conn // never writes, so that its data_version shows all changes of others
	version int64     // the data_version that changed has seen last

	counter    int64 // the last id that was drawn, as of the last window
	generation int64 // how often it was set back
}

func newSQLiteStore(ctx context.Context, db *sql.DB, table Table) (*sqliteStore, error) {
	s := &sqliteStore{db: db, table: table}
	err := db.QueryRowContext(ctx, "select file from pragma_database_list where name = 'main'").
		Scan(&s.file)
	if err == nil && s.file != "" {
		s.info, err = os.Stat(s.file)
	}
	return s, err
}

// errReplaced means that the database's file is another one than at the start. The connections
// still use the old one.
var errReplaced = errors.New("the file of the database was removed or replaced; start anew")

// sameFile returns errReplaced if the file was replaced.
func (s *sqliteStore) sameFile() error {
	if s.file == "" {
		return nil
	}
	now, err := os.Stat(s.file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, s.info) {
		return fmt.Errorf("%w: %s", errReplaced, s.file)
	}
	return err
}

func (s *sqliteStore) fill(text string) string { return s.table.fill(DialectSQLite, text) }

// now is the database's clock, in seconds since 1970.
const now = "((julianday('now') - 2440587.5) * 86400.0)"

// changed reports whether the database may have changed since the last call. It is not safe for
// concurrent use.
func (s *sqliteStore) changed(ctx context.Context) (bool, error) {
	if s.db.Stats().MaxOpenConnections == 1 {
		return true, nil // the only connection has other work
	}
	if s.watch == nil {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return true, err
		}
		s.watch, s.version = conn, -1
	}
	before := s.version
	err := s.watch.QueryRowContext(ctx, "pragma data_version").Scan(&s.version)
	if err != nil {
		_ = s.watch.Close() // the next call opens another one
		s.watch = nil
	}
	return s.version != before, err
}

func (s *sqliteStore) close() {
	if s.watch != nil {
		_ = s.watch.Close() // it has written nothing
		s.watch = nil
	}
}

// write runs f in a transaction. It takes the lock of the writer at the beginning: a transaction
// that takes it later fails if another one has written since its first read.
func (s *sqliteStore) write(ctx context.Context, f func(tx sqliteTx) error) (err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	tx := sqliteTx{ctx, s, conn}
	if _, err := tx.exec("begin immediate"); err != nil {
		// It may have begun nevertheless, if ctx has ended; otherwise this has no effect.
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "rollback")
		return err
	}
	if err := f(tx); err != nil {
		// The statement must reach the connection even if ctx has ended.
		_, rollback := conn.ExecContext(context.WithoutCancel(ctx), "rollback")
		return errors.Join(err, rollback)
	}
	_, err = conn.ExecContext(context.WithoutCancel(ctx), "commit")
	if err != nil {
		_, rollback := conn.ExecContext(context.WithoutCancel(ctx), "rollback")
		err = errors.Join(err, rollback)
	}
	return err
}

// sqliteTx is a transaction.
type sqliteTx struct {
	ctx  context.Context //nolint:containedctx // of the transaction
	s    *sqliteStore
	conn *sql.Conn
}

// exec carries a statement out and returns how many rows it has changed.
func (t sqliteTx) exec(text string, args ...any) (int64, error) {
	result, err := t.conn.ExecContext(t.ctx, t.s.fill(text), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t sqliteTx) ask(text string, args []any, to ...any) error {
	return t.conn.QueryRowContext(t.ctx, t.s.fill(text), args...).Scan(to...)
}

func (*sqliteStore) rights(context.Context) error { return nil } // those of the file

func (s *sqliteStore) exec(ctx context.Context, statements []string) error {
	return s.write(ctx, func(tx sqliteTx) error {
		for _, text := range statements {
			if _, err := tx.conn.ExecContext(ctx, text); err != nil {
				return fmt.Errorf("%w, in the statement: %.60s…", err, text)
			}
		}
		return nil
	})
}

func (s *sqliteStore) claim(ctx context.Context, c claim) (l lease, err error) {
	err = s.write(ctx, func(tx sqliteTx) error {
		var age sql.NullFloat64
		err := tx.ask("select b.owner, b.epoch, abs("+now+" - b.seen), e.stream, "+
			"e.stream_created, e.inversions from LEASE e "+
			"join LEASE b on b.slot = 0 and b.part = 'beat' where e.slot = 0 and e.part = 'epoch'",
			nil, &l.owner, &l.fence.epoch, &age, &l.stream, &l.created, &l.inversions)
		if err != nil {
			return err
		}
		free := l.owner == "" || l.owner == c.before || l.owner == c.owner || !age.Valid ||
			age.Float64 > c.failover.Seconds()
		if !free || l.stream != "" && (l.stream != c.stream || l.created != c.created) {
			return nil
		}
		l.taken, l.owner, l.stream, l.created = true, c.owner, c.stream, c.created
		l.fence.owner = c.owner
		l.fence.epoch++
		_, err = tx.exec("update LEASE set epoch = ?, owner = ?, seen = "+now+", stream = ?, "+
			"stream_created = ? where slot = 0", l.fence.epoch, c.owner, c.stream, c.created)
		return err
	})
	return l, err
}

func (s *sqliteStore) renew(ctx context.Context, f fence) (fence, error) {
	err := s.write(ctx, func(tx sqliteTx) error {
		err := tx.ask("select epoch + 1 from LEASE where slot = 0 and part = 'beat' and owner = ?",
			[]any{f.owner}, &f.epoch)
		if errors.Is(err, sql.ErrNoRows) {
			return errLost
		}
		if err == nil {
			_, err = tx.exec("update LEASE set epoch = ? where slot = 0", f.epoch)
		}
		return err
	})
	return f, err
}

// one carries out a statement that must change a row.
func (s *sqliteStore) one(ctx context.Context, text string, args ...any) error {
	return s.write(ctx, func(tx sqliteTx) error {
		n, err := tx.exec(text, args...)
		if err == nil && n == 0 {
			err = errLost
		}
		return err
	})
}

func (s *sqliteStore) beat(ctx context.Context, f fence, inversions int64) error {
	if err := s.sameFile(); err != nil {
		return err
	}
	return s.one(ctx, "update LEASE set seen = "+now+", inversions = ? "+
		"where slot = 0 and part = 'beat' and owner = ?", inversions, f.owner)
}

func (s *sqliteStore) leave(ctx context.Context, f fence) error {
	return s.one(ctx, "update LEASE set owner = '', seen = null "+
		"where slot = 0 and part = 'beat' and owner = ?", f.owner)
}

const holdRow = `insert into HELD (key, reason, ids) values (?, ?, ?)
on conflict (key) do update set ids = (select json_group_array(value) from (
  select value from json_each(HELD.ids) union select value from json_each(excluded.ids)))`

const buryRow = "insert into DEAD (id, partition_key, record_data, explicit_hash_key, reason) " +
	"select ID, KEY, DATA, HASHTEXT, ? from TABLE where ID = ?"

func (s *sqliteStore) commit(ctx context.Context, f fence, c *change) error {
	return s.write(ctx, func(tx sqliteTx) error {
		var mine int
		err := tx.ask("select 1 from LEASE where slot = 0 and part = 'epoch' and owner = ? and "+
			"epoch = ?", []any{f.owner, f.epoch}, &mine)
		if errors.Is(err, sql.ErrNoRows) {
			return errLost
		}
		if err != nil {
			return err
		}
		return tx.change(f, c)
	})
}

func (t sqliteTx) change(f fence, c *change) (err error) {
	each := func(text string, args ...any) {
		if err == nil {
			_, err = t.exec(text, args...)
		}
	}
	for _, u := range c.closing() {
		each("delete from JOURNAL where slot = 0 and producer = ? and number = ?", u.producer[:],
			int64(u.number))
	}
	for i := range c.opened {
		u := &c.opened[i]
		each("insert into JOURNAL (slot, epoch, producer, number, low, key, hash_key, ids, crc, "+
			"frozen_ns, server_ns, boot_id, boot_ns) "+
			"values (0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing", f.epoch,
			u.producer[:], int64(u.number), int64(u.low), u.key, u.hash, jsonOf(u.ids),
			int64(u.crc), u.frozenNS, u.serverNS, u.bootID, u.bootNS)
	}
	if rows := c.rows(); len(rows) > 0 && err == nil {
		var ids []int64
		if ids, err = t.unchanged(rows); err == nil {
			var n int64
			n, err = t.exec("delete from TABLE where ID in (select value from json_each(?))",
				jsonOf(ids))
			if err == nil && n != int64(len(ids)) {
				err = errUndeletable
			}
		}
	}
	for _, h := range c.held {
		each(holdRow, h.Key, h.Reason, jsonOf(h.IDs))
	}
	for _, d := range c.dead {
		if err != nil {
			break
		}
		var ids []int64
		if ids, err = t.unchanged([]rowID{d.rowID}); len(ids) > 0 {
			each(buryRow, d.reason, d.id)
			each("delete from TABLE where ID = ?", d.id)
		}
	}
	return err
}

// unchanged returns the ids of the rows that are as they were read.
func (t sqliteTx) unchanged(rows []rowID) (ids []int64, err error) {
	all := make([]int64, len(rows))
	versions := make(map[int64]uint32, len(rows))
	for i, r := range rows {
		all[i], versions[r.id] = r.id, r.version
	}
	found, err := t.conn.QueryContext(t.ctx, t.s.fill("select "+rowColumns+
		" from TABLE where ID in (select value from json_each(?))"), jsonOf(all))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var r row
		var version string
		err := found.Scan(&r.id, &r.key, &r.hash, &r.data, &r.noKey, &version)
		if err != nil {
			return nil, err
		}
		if checksum(&r) == versions[r.id] {
			ids = append(ids, r.id)
		}
	}
	return ids, found.Err()
}

func jsonOf(ids []int64) string {
	text := arrayOf(ids)
	return "[" + strings.Trim(text, "{}") + "]"
}

func (s *sqliteStore) query(
	ctx context.Context, text string, args []any, each func(scan func(...any) error) error,
) (err error) {
	rows, err := s.db.QueryContext(ctx, s.fill(text), args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *sqliteStore) open(ctx context.Context) (units []openUnit, err error) {
	err = s.query(ctx, openUnitsSQL, nil, func(scan func(...any) error) error {
		var u openUnit
		var producer string
		var number, low, crc int64
		var ids string
		if err := scan(&producer, &number, &low, &u.key, &u.hash, &ids, &crc, &u.frozenNS,
			&u.serverNS, &u.bootID, &u.bootNS); err != nil {
			return err
		}
		if err := u.setProducer(producer); err != nil {
			return err
		}
		u.number, u.low, u.crc = uint64(number), uint64(low), uint32(crc)
		units = append(units, u)
		return json.Unmarshal([]byte(ids), &units[len(units)-1].ids)
	})
	return units, err
}

var errEnough = errors.New("enough bytes were read")

// read reads rows up to the bytes of most.
func (s *sqliteStore) read(
	ctx context.Context, most limits, text string, args ...any,
) (p page, err error) {
	bytes := 0
	err = s.query(ctx, text, args, func(scan func(...any) error) error {
		var r row
		var version string
		if err := scan(&r.id, &r.key, &r.hash, &r.data, &r.noKey, &version); err != nil {
			return err
		}
		r.noData, r.version = r.data == nil, checksum(&r)
		p.rows = append(p.rows, r)
		if bytes += r.size(); most.bytes > 0 && bytes >= most.bytes {
			p.full = true
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return p, err
}

func (s *sqliteStore) rows(ctx context.Context, ids []int64) (map[int64]row, error) {
	p, err := s.read(ctx, limits{}, "select "+rowColumns+
		" from TABLE where ID in (select value from json_each(?))", jsonOf(ids))
	byID := make(map[int64]row, len(p.rows))
	for _, r := range p.rows {
		byID[r.id] = r
	}
	return byID, err
}

// sqliteConditions is conditions for SQLite.
func sqliteConditions(w window) (where string, args []any) {
	where, args = "where ID > ?", []any{w.after}
	if w.most.until != 0 {
		args = append(args, w.most.until)
		where += " and ID <= ?"
	}
	if len(w.skip) > 0 {
		skip, _ := json.Marshal(w.skip) // texts always have a JSON form
		args = append(args, string(skip))
		where += " and KEYTEXT not in (select value from json_each(?))"
	}
	if len(w.known) > 0 {
		args = append(args, jsonOf(w.known))
		where += " and ID not in (select value from json_each(?))"
	}
	return where + " order by ID limit ?", append(args, w.most.rows)
}

func (s *sqliteStore) window(ctx context.Context, w window) (page, error) {
	var top int64
	if w.top {
		text := s.fill("select coalesce(max(ID), 0) from TABLE")
		err := s.db.QueryRowContext(ctx, text).Scan(&top)
		if err != nil {
			return page{}, err
		}
	}
	var counter int64
	err := s.db.QueryRowContext(ctx, "select coalesce(max(seq), 0) from sqlite_sequence "+
		"where name = ?", s.table.base()).Scan(&counter)
	if err != nil {
		return page{}, err
	}
	if counter < s.counter {
		s.generation++
	}
	s.counter = counter
	where, args := sqliteConditions(w)
	p, err := s.read(ctx, w.most, "select "+rowColumns+" from TABLE "+where, args...)
	p.full = p.full || len(p.rows) >= w.most.rows
	p.top, p.xmin, p.next, p.durable = top, 1, 1, true
	p.generation = s.generation
	return p, err
}

func (*sqliteStore) secure(context.Context) error { return nil } // synchronous is FULL

func (s *sqliteStore) ofKeys(ctx context.Context, places []place, most limits) (p page, err error) {
	left := most.bytes
	for _, at := range places {
		until, which := most.until, "KEY = ?1"
		if until == 0 {
			until = 1<<63 - 1
		}
		if at.key == "" {
			which = "(KEY = ?1 or NOKEY)"
		}
		part, err := s.read(ctx, limits{bytes: left}, "select "+rowColumns+" from TABLE "+
			"where "+which+" and ID >= ? and ID <= ? order by ID limit ?", at.key, at.from, until,
			most.rows)
		if err != nil {
			return page{}, err
		}
		p.rows = append(p.rows, part.rows...)
		for i := range part.rows {
			left -= part.rows[i].size()
		}
		if p.full = part.full; part.full || most.bytes > 0 && left <= 0 {
			p.full = true
			break
		}
	}
	return p, nil
}

func (s *sqliteStore) ids(ctx context.Context, w window) ([]row, error) {
	where, args := sqliteConditions(w)
	p, err := s.read(ctx, limits{}, idsSQL+where, args...)
	return p.rows, err
}

func (s *sqliteStore) held(ctx context.Context) (keys []HeldKey, err error) {
	err = s.query(ctx, "select key, reason, ids, held_at from HELD order by held_at, key", nil,
		func(scan func(...any) error) error {
			var h HeldKey
			var ids, since string
			if err := scan(&h.Key, &h.Reason, &ids, &since); err != nil {
				return err
			}
			if h.Since, err = time.Parse(time.RFC3339, since); err != nil {
				return err
			}
			keys = append(keys, h)
			return json.Unmarshal([]byte(ids), &keys[len(keys)-1].IDs)
		})
	return keys, err
}

func (s *sqliteStore) release(ctx context.Context, key string, skip bool) (ok bool, err error) {
	err = s.write(ctx, func(tx sqliteTx) error {
		var reason, ids string
		err := tx.ask("select reason, ids from HELD where key = ?", []any{key}, &reason, &ids)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		ok = true
		if _, err := tx.exec("delete from HELD where key = ?", key); err != nil || !skip {
			return err
		}
		const which = "where ID in (select value from json_each(?)) and KEYTEXT = ?"
		_, err = tx.exec("insert into DEAD (id, partition_key, record_data, explicit_hash_key, "+
			"reason) select ID, KEY, DATA, HASHTEXT, ? from TABLE "+which, reason, ids, key)
		if err == nil {
			_, err = tx.exec("delete from TABLE "+which, ids, key)
		}
		return err
	})
	return ok && err == nil, err
}

const (
	sqliteStatusSQL = `select
  (select count(*) from (select 1 from TABLE limit 1000000)), (select count(*) from JOURNAL),
  (select count(*) from HELD), (select count(*) from DEAD),
  b.inversions, b.owner, coalesce(` + now + ` - b.seen, 0), e.stream
from LEASE e join LEASE b on b.slot = 0 and b.part = 'beat' where e.slot = 0 and e.part = 'epoch'`
	sqliteOldestSQL = "select coalesce((select " + now + " - (julianday(created_at) - 2440587.5) " +
		"* 86400.0 from TABLE order by ID limit 1), 0)"
)

func (s *sqliteStore) status(ctx context.Context) (st Status, err error) {
	var seen float64
	err = s.db.QueryRowContext(ctx, s.fill(sqliteStatusSQL)).Scan(&st.Rows, &st.Journal, &st.Held,
		&st.Dead, &st.Inversions, &st.Owner, &seen, &st.Stream)
	st.Seen = seconds(seen)
	return st, err
}

func (s *sqliteStore) ages(ctx context.Context) (row, _ time.Duration, err error) {
	var oldest float64
	err = s.db.QueryRowContext(ctx, s.fill(sqliteOldestSQL)).Scan(&oldest)
	if err != nil { // there is no created_at, or it is no time
		oldest = -1
	}
	return seconds(oldest), 0, nil
}

func (s *sqliteStore) columns(ctx context.Context) (map[string]string, error) {
	types := map[string]string{}
	err := s.query(ctx, "select name, lower(type) from pragma_table_info(?)",
		[]any{s.table.base()}, func(scan func(...any) error) error {
			var name, of string
			err := scan(&name, &of)
			types[name] = of
			return err
		})
	return types, err
}
