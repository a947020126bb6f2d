package rollup

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel"
)

// update is the update of the rows of a batch.
type update struct {
	rows      *Rows
	entry     string   // name of the shard's own entry
	ancestors []string // names of the entries of the shard's ancestors
	bad       atomic.Int64
}

// row writes a row that has the records of a part, unless the row has them already.
func (u *update) row(ctx context.Context, p *part) error {
	r := u.rows
	unlock, err := r.locks.lock(ctx, p.key)
	if err != nil {
		return err
	}
	defer unlock()
	seen, known := r.cache.get(p.key)
	if !known && p.seen != nil {
		seen, known = *p.seen, true
	}
	for attempt, start := 1, time.Now(); ; attempt++ {
		if !known { // the row was forgotten since Rows.look, or changed by another process
			rows, err := r.read(ctx, []string{p.key})
			if err != nil {
				return err
			}
			seen = rows[0]
		}
		next, bad, err := u.fold(p, seen)
		if err != nil || next == nil {
			return err
		}
		size, err := r.cfg.Definition.checkSize(next)
		if known && (err != nil || len(bad) > 0) {
			// The row may be another one by now, and then take the records.
			known = false
			r.cache.forget(p.key)
			continue
		}
		if err != nil {
			return Lasting(err)
		}
		err = u.write(ctx, seen, next, size, bad)
		if err == nil {
			return nil
		}
		known = false
		if r.cache.forget(p.key); !r.again(ctx, err, attempt, start) {
			return err
		}
	}
}

// write writes a row in place of the one that was seen. Its bad records are kept first: the row's
// entry is behind them, so nothing would come back to them.
func (u *update) write(
	ctx context.Context, seen StoredRow, next *StoredRow, size int, bad []BadRecord,
) error {
	r := u.rows
	for _, b := range bad {
		if err := r.keep(ctx, b); err != nil {
			return err
		}
	}
	if err := r.cfg.Store.Write(ctx, *next, seen.Version); err != nil {
		return err
	}
	r.cache.put(*next, size)
	for _, b := range bad {
		r.cfg.OnBad(b)
	}
	u.bad.Add(int64(len(bad)))
	return nil
}

// fold returns the row with those records of a part that it lacks, and the records that it cannot
// take; nil if it lacks none.
func (u *update) fold(p *part, seen StoredRow) (*StoredRow, []BadRecord, error) {
	own, err := entryOf(seen, u.entry)
	if err != nil {
		return nil, nil, err
	}
	from := slices.IndexFunc(p.records, func(record *runnel.Record) bool {
		return own.Less(record.Position)
	})
	if from < 0 {
		return nil, nil, nil
	}
	row, bad, err := u.merge(p, seen, from)
	if err != nil {
		return nil, nil, err
	}
	next := &StoredRow{
		Row: row, Key: p.key, Version: seen.Version + 1, Entries: maps.Clone(seen.Entries),
	}
	if seen.Version == 0 {
		next.Version = firstVersion()
		next.Entries = map[string]string{}
	}
	for _, name := range u.ancestors {
		if _, found := next.Entries[name]; found {
			next.Entries[name] = runnel.End().SortText()
		}
	}
	next.Entries[u.entry] = p.records[len(p.records)-1].Position.SortText()
	if ttl := u.rows.cfg.TTL; ttl > 0 {
		next.Expires = expiry(time.Now(), row.Bucket.Add(u.rows.cfg.Definition.Bucket), ttl)
	}
	return next, bad, nil
}

// firstVersion returns a new row's version. It is drawn at random, so that a row which was deleted
// and made again does not have the version that a cached row has. All of them are exact in the
// numbers of JavaScript.
func firstVersion() int64 { return 1 + rand.Int64N(1<<52) }

// expiry returns the time from which a row may be deleted. The bucket's end alone would not do: the
// rows of old records would be deleted between their writes.
func expiry(now, bucketEnd time.Time, ttl time.Duration) time.Time {
	if bucketEnd.After(now) {
		now = bucketEnd
	}
	return now.Add(ttl).UTC().Truncate(time.Second)
}

// entryOf returns the position up to which a row has a shard's records.
func entryOf(row StoredRow, name string) (runnel.Position, error) {
	text, found := row.Entries[name]
	if !found {
		return runnel.Start(), nil
	}
	at, err := runnel.ParsePosition(text)
	if err != nil {
		return runnel.Start(), fmt.Errorf("%w: %w", Damaged("entries"), err)
	}
	return at, nil
}

// merge folds the records of a part, from an index on, into a row.
func (u *update) merge(p *part, seen StoredRow, from int) (Row, []BadRecord, error) {
	fresh, whole := p.row, !p.apart
	if from > 0 && whole {
		folder, err := NewFolder(u.rows.cfg.Definition)
		if err != nil {
			return Row{}, nil, err
		}
		for _, record := range p.records[from:] {
			whole = whole && folder.Add(record) == nil
		}
		if whole {
			fresh = folder.Rows()[0]
		}
	}
	if whole && seen.Version == 0 {
		return fresh, nil, nil
	}
	if row := seen.Row; whole && u.rows.cfg.Definition.Merge(&row, &fresh) == nil {
		return row, nil, nil
	}
	return u.mergeEach(p.records[from:], seen)
}

// mergeEach folds records into a row one after the other. It is for records that overflow: only
// the row says which ones.
func (u *update) mergeEach(records []*runnel.Record, seen StoredRow) (Row, []BadRecord, error) {
	folder, err := NewFolder(u.rows.cfg.Definition)
	if err != nil {
		return Row{}, nil, err
	}
	row, absent := seen.Row, seen.Version == 0
	var bad []BadRecord
	for _, record := range records {
		folder.Reset()
		err := folder.Add(record)
		switch {
		case err != nil:
		case absent:
			row, absent = folder.Rows()[0], false
		default:
			err = u.rows.cfg.Definition.Merge(&row, &folder.Rows()[0])
		}
		if err != nil {
			bad = append(bad, BadRecord{record, reason(err)})
		}
	}
	if absent { // Rows.split has folded each of them
		return Row{}, nil, fmt.Errorf("a record fits no longer: %s", bad[0].Reason)
	}
	return row, bad, nil
}
