package rollup

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/runnel-stream/runnel"
)

// flaw is a mistake of a design, with which the simulation must find damage.
type flaw string

const (
	noFlaw           flaw = "none"
	noVersion        flaw = "rows are written without a condition"
	ownEntryOnly     flaw = "the condition is the shard's own entry"
	ancestorsRemoved flaw = "entries of ancestors are removed"
	articleGuard     flaw = "a row takes a batch if its entry is before the batch's end"
)

// model is a database in memory. Only the scheduler calls it.
type model struct {
	flaw      flaw
	rows      map[string]StoredRow
	bad       map[string]bool // by shard and position
	conflicts int
}

func (m *model) read(keys []string) []StoredRow {
	rows := make([]StoredRow, len(keys))
	for i, key := range keys {
		rows[i] = m.rows[key]
		rows[i].Entries = maps.Clone(rows[i].Entries)
	}
	return rows
}

// write writes a row of a shard. seen is the row as the writer saw it.
func (m *model) write(row StoredRow, over int64, own string, seen StoredRow) error {
	stored := m.rows[row.Key]
	row.Entries = maps.Clone(row.Entries)
	failed := stored.Version != over
	switch m.flaw {
	case noVersion:
		failed = false
	case ownEntryOnly:
		if failed = stored.Entries[own] != seen.Entries[own]; !failed && stored.Version > 0 {
			entry := row.Entries[own]
			row.Entries, row.Version = maps.Clone(stored.Entries), stored.Version+1
			row.Entries[own] = entry
			addTo(&row, &stored, &seen)
		}
	case ancestorsRemoved:
		maps.DeleteFunc(row.Entries, func(_, at string) bool { return at == runnel.End().SortText() })
	}
	if failed {
		m.conflicts++
		return ErrConflict
	}
	m.rows[row.Key] = row
	return nil
}

// addTo makes counts and sums of a write those of ADD: they rise by the writer's records alone.
func addTo(row, stored, seen *StoredRow) {
	row.Values = slices.Clone(row.Values)
	for i, column := range simDefinition.Columns {
		if column.Op == Count || column.Op == Sum {
			row.Values[i].Int += stored.Values[i].Int
			if seen.Version > 0 {
				row.Values[i].Int -= seen.Values[i].Int
			}
		}
	}
}

// simStore is the store of a process in the simulation. Each call waits for the scheduler.
type simStore struct {
	w    *world
	seen map[string]StoredRow // as read or written last; only the scheduler uses it
}

func (s *simStore) Prepare(context.Context, Setup) error { return nil }

func (s *simStore) String() string { return "the model" }

func (s *simStore) Read(ctx context.Context, keys []string) (rows []StoredRow, err error) {
	err = s.w.ask(ctx, "read "+keys[0], true, func() error {
		rows = s.w.store.read(keys)
		for i, key := range keys {
			s.seen[key] = rows[i]
		}
		return nil
	})
	return rows, err
}

func (s *simStore) Write(ctx context.Context, row StoredRow, over int64) error {
	own := entryName(ctx.Value(readerKey{}).(*reader).shard.id)
	return s.w.ask(ctx, "write "+row.Key, false, func() error {
		err := s.w.store.write(row, over, own, s.seen[row.Key])
		if err == nil {
			s.seen[row.Key] = row
		}
		return err
	})
}

func (s *simStore) KeepBad(ctx context.Context, bad BadRecord) error {
	id := string(bad.Record.ShardID) + " " + bad.Record.Position.SortText()
	return s.w.ask(ctx, "bad "+id, false, func() error {
		s.w.store.bad[id] = true
		return nil
	})
}

var errLost = errors.New("no answer")

type readerKey struct{}

// call is a call of a reader that waits for the scheduler.
type call struct {
	reader *reader
	what   string
	reads  bool // it changes nothing
	run    func() error
	answer chan error
	after  int // the step before which the scheduler leaves it alone
}

// ask waits until the scheduler answers a call.
func (w *world) ask(ctx context.Context, what string, reads bool, run func() error) error {
	c := &call{
		reader: ctx.Value(readerKey{}).(*reader), what: what, reads: reads, run: run,
		answer: make(chan error, 1), after: -1,
	}
	w.mu.Lock()
	w.waiting = append(w.waiting, c)
	w.mu.Unlock()
	return <-c.answer
}
