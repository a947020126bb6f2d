package outbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/runnel-stream/runnel/internal/sqldb"
)

// Migrate makes the table and the relay's own tables, as far as they are not there: see Schema and
// RelaySchema. An existing table keeps its rows and columns, and gets the index on key and id; in
// PostgreSQL its writers wait meanwhile.
func Migrate(ctx context.Context, db DB, table Table) error {
	statements, err := table.Schema(db.dialect())
	if err != nil {
		return err
	}
	own, err := table.RelaySchema(db.dialect())
	if err != nil {
		return err
	}
	return admin(ctx, db, table, "migrate", func(s store) error {
		return s.exec(ctx, append(statements, own...))
	})
}

// Held returns the held keys of a table, the oldest first.
func Held(ctx context.Context, db DB, table Table) (held []HeldKey, err error) {
	err = admin(ctx, db, table, "list the held keys", func(s store) (err error) {
		held, err = s.held(ctx)
		return err
	})
	return held, err
}

// Release lets a held key go on: its rows are sent as new ones. After a look-up that came too late
// that may double the rows of HeldKey.IDs. With skip these become dead letters first. It returns
// false if the key is not held. A running relay notices it within a second.
func Release(
	ctx context.Context, db DB, table Table, key string, skip bool,
) (released bool, err error) {
	err = admin(ctx, db, table, "release a key", func(s store) (err error) {
		released, err = s.release(ctx, key, skip)
		return err
	})
	return released, err
}

// ReadStatus returns the numbers of a table and its relay.
func ReadStatus(ctx context.Context, db DB, table Table) (status Status, err error) {
	err = admin(ctx, db, table, "read the status", func(s store) (err error) {
		if status, err = s.status(ctx); err == nil {
			status.Oldest, status.OldestTransaction, err = s.ages(ctx)
		}
		return err
	})
	return status, err
}

// Adapt returns the table with the missing fields as the database has it: the type of the data, and
// NoColumn if there is no explicit_hash_key. A table that does not exist is returned as it is.
func Adapt(ctx context.Context, db DB, table Table) (Table, error) {
	asked := table
	err := admin(ctx, db, table, "read the columns", func(s store) error {
		types, err := s.columns(ctx)
		if err != nil || len(types) == 0 {
			return err
		}
		full := table.withDefaults()
		if _, there := types[full.HashKey]; !there && asked.HashKey == "" {
			table.HashKey = NoColumn
		}
		if of := types[full.Data]; asked.Type == "" {
			switch {
			case of == "blob":
				table.Type = Bytea
			case of == "character varying" || db.dialect() == DialectSQLite:
				table.Type = Text
			case of != "":
				table.Type = DataType(of)
			}
			if table.Validate() != nil {
				table.Type = "" // Check names the type that it is
			}
		}
		return nil
	})
	return table, err
}

// Waiting is a row that a relay would put.
type Waiting struct {
	ID   int64  // the row's id
	Key  string // the partition key
	Hash string // the explicit hash key; "" for none
	Data []byte // the record's data
}

// Pending calls each with the rows in the table that no held key has, in the order of their ids.
// Some of them may be in the stream already, since a relay deletes rows after their
// acknowledgement. It changes nothing.
func Pending(ctx context.Context, db DB, table Table, each func(Waiting) error) error {
	return admin(ctx, db, table, "read the rows", func(s store) error {
		held, err := s.held(ctx)
		if err != nil {
			return err
		}
		skip := map[string]bool{}
		for _, h := range held {
			skip[h.Key] = true
		}
		sizes := &reader{limit: windowFirst}
		for w := (window{after: lowest}); ; {
			w.most = limits{rows: sizes.limit, bytes: windowBytes}
			p, err := s.window(ctx, w)
			if err != nil {
				return err
			}
			sizes.adapt(&p)
			for _, r := range p.rows {
				w.after = r.id
				if skip[r.key] {
					continue
				}
				if err := each(Waiting{r.id, r.key, r.hash, r.data}); err != nil {
					return err
				}
			}
			if !p.full {
				return nil
			}
		}
	})
}

// adminTimeout is how long a statement of a command may take: it may read a large table.
const adminTimeout = 10 * time.Minute

// startTimeout is how long a database that does not answer is asked again at the start: it may be
// starting, too.
const startTimeout = 10 * time.Second

// patiently calls f until it succeeds or the database answers, for startTimeout at most.
func patiently(ctx context.Context, f func() error) error {
	start := time.Now()
	for failures := 1; ; failures++ {
		err := f()
		if err == nil || !sqldb.Starting(err) || time.Since(start) > startTimeout {
			return err
		}
		if err := databaseBackoff.Wait(ctx, failures); err != nil {
			return err
		}
	}
}

// admin opens the store of a table for one command.
func admin(ctx context.Context, db DB, table Table, what string, do func(store) error) error {
	if err := table.Validate(); err != nil {
		return err
	}
	table = table.withDefaults()
	if err := table.fits(db.dialect()); err != nil {
		return err
	}
	err := patiently(ctx, func() error {
		s, err := open(ctx, db, table, adminTimeout)
		if err != nil {
			return err
		}
		defer s.close()
		return do(s)
	})
	if err != nil {
		return fmt.Errorf("outbox: %s of table %s: %w", what, table.Name, err)
	}
	return nil
}

// Check checks the table, as Table.Check does, and the relay's own tables. The error matches
// ErrUnfit if they are not as a relay needs them.
func Check(ctx context.Context, db DB, table Table) error {
	return patiently(ctx, func() error { return check(ctx, db, table) })
}

func check(ctx context.Context, db DB, table Table) error {
	if err := table.Check(ctx, db); err != nil {
		return err
	}
	s, err := open(ctx, db, table, adminTimeout)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.rights(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	if _, err := s.status(ctx); err != nil {
		if sqldb.State(err) == undefinedTable || strings.Contains(err.Error(), "no such table") {
			err = fmt.Errorf("%w: %w", ErrUnfit, err)
		}
		return fmt.Errorf("the relay's own tables %s_journal, _lease, _held and _dead cannot be "+
			"read: make them with Migrate, and give the relay's role its rights: %w",
			table.Name, err)
	}
	return nil
}
