package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/sqldb"
	"github.com/runnel-stream/runnel/sink"
)

// Sink is a sink.Sink over a database. It is safe for concurrent use. It needs no closing; the
// database remains its owner's.
type Sink struct{ cfg Config }

var _ sink.Lister = (*Sink)(nil)

// New returns the sink of a configuration. It does not reach the database.
func New(cfg Config) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Sink{cfg.withDefaults()}, nil
}

// Migrate makes the tables of the sink. It changes nothing if they are there, and then needs no
// right to make tables. Several programs may call it at once.
func (s *Sink) Migrate(ctx context.Context) error {
	if s.isThere(ctx, "runnel_position") && s.isThere(ctx, "runnel_dead") {
		return nil
	}
	for failures := 1; ; failures++ {
		err := s.migrate(ctx)
		if err == nil {
			return nil
		}
		if failures == migrateTries || !s.cfg.Dialect.Moment(err) ||
			pauses.Wait(ctx, failures) != nil {
			return fmt.Errorf("sqlsink: make the tables: %w", err)
		}
	}
}

const migrateTries = 5

// isThere reports whether a table of the sink can be read.
func (s *Sink) isThere(ctx context.Context, table string) bool {
	return s.query(ctx, "select app from "+table+" where app = ''", nil,
		func(func(...any) error) error { return nil }) == nil
}

func (s *Sink) migrate(ctx context.Context) error {
	tx, err := s.cfg.Client.Begin(ctx, s.cfg.Isolation)
	if err != nil {
		return err
	}
	for _, text := range s.cfg.Dialect.Tables {
		if _, err = tx.Exec(ctx, text); err != nil {
			tx.Rollback(ctx)
			return err
		}
	}
	return tx.Commit(ctx)
}

// place names a shard in the table of positions.
type place struct {
	app, stream string
	shard       runnel.ShardID
}

func (p place) args(more ...any) []any {
	return append([]any{p.app, p.stream, string(p.shard)}, more...)
}

// streamText returns a stream as the tables have it: NAME@MS, with the milliseconds of its
// creation. A stream that was deleted and made again is another one.
func streamText(name string, created time.Time) string {
	return fmt.Sprintf("%s@%d", name, created.UnixMilli())
}

// Open implements sink.Sink: it finds the shard's row. Reading begins where the row says, whatever
// the checkpoint is. For a shard without a row it returns *sink.ParentError unless the rows of all
// its parents are at their ends.
func (s *Sink) Open(ctx context.Context, shard sink.Shard) (sink.Writer, error) {
	w, err := s.open(ctx, shard)
	if err != nil {
		return nil, fmt.Errorf("sqlsink: open %s of %s: %w", shard.ID, shard.Stream, err)
	}
	return w, nil
}

func (s *Sink) open(ctx context.Context, shard sink.Shard) (*writer, error) {
	if shard.Stream == "" || shard.ID == "" || shard.Created.IsZero() {
		return nil, errors.New("the stream's name, its creation time or the shard's id is missing")
	}
	at := place{s.cfg.App, streamText(shard.Stream, shard.Created), shard.ID}
	w := &writer{sink: s, stream: shard.Stream, place: at, parents: slices.Sorted(
		slices.Values(shard.Parents))}
	found, err := s.read(ctx, at)
	if err != nil {
		return nil, err
	}
	w.adopt(found)
	if found.there {
		return w, nil
	}
	w.known.Parents, err = s.ends(ctx, at, shard.Parents)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// ends returns the states at the ends of a shard's parents. The error is *sink.ParentError if one
// has not ended.
func (s *Sink) ends(ctx context.Context, of place, parents []runnel.ShardID) ([][]byte, error) {
	var states [][]byte
	for _, id := range parents {
		parent, err := s.read(ctx, place{of.app, of.stream, id})
		if err != nil {
			return nil, err
		}
		if parent.position != runnel.End() {
			return nil, &sink.ParentError{Parent: id, End: parent.position}
		}
		states = append(states, parent.state)
	}
	return states, nil
}

// Unended implements sink.Lister.
func (s *Sink) Unended(
	ctx context.Context, stream string, created time.Time,
) (shards []runnel.ShardID, err error) {
	args := []any{s.cfg.App, streamText(stream, created), runnel.End().SortText()}
	err = s.query(ctx, s.cfg.Dialect.Unended, args,
		func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			shards = append(shards, runnel.ShardID(id))
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("sqlsink: list the shards of %s without an end: %w", stream, err)
	}
	return shards, nil
}

// row is a shard's row as it was read. The zero row is missing.
type row struct {
	there    bool
	position runnel.Position
	token    string // new with each commit
	state    []byte // of the reader, the changes included
	stored   stored // how the row has it
	gaps     string // JSON; "" for none
}

func (s *Sink) read(ctx context.Context, at place) (r row, err error) {
	err = s.query(ctx, s.cfg.Dialect.Read, at.args(),
		func(scan func(...any) error) error {
			var position string
			var gaps *string
			var state, changes []byte
			if err := scan(&position, &r.token, &state, &changes, &gaps); err != nil {
				return fmt.Errorf("the table runnel_position is not Sink.Migrate's: %w", err)
			}
			if gaps != nil {
				r.gaps = *gaps
			}
			r.there, r.stored = true, storedAs(state, changes)
			var column string
			if r.state, column, err = folded(state, changes); err != nil {
				return badRow(at, column, err)
			}
			if r.position, err = runnel.ParsePosition(position); err != nil {
				return badRow(at, "position", err)
			}
			return nil
		})
	switch {
	case sqldb.Missing(err):
		return r, fmt.Errorf("read the position: %w; Sink.Migrate makes the table "+
			"runnel_position; if another program has one, use another schema", err)
	case err != nil:
		return r, fmt.Errorf("read the position: %w", err)
	}
	return r, nil
}

// badRow returns the error of a column that is not as this program writes it.
func badRow(at place, column string, err error) error {
	return fmt.Errorf("the row of shard %s in runnel_position, column %s: %w; restore the row and "+
		"its effects from a backup, or delete both to begin the shard anew", at.shard, column, err)
}

func (s *Sink) query(
	ctx context.Context, text string, args []any, each func(scan func(to ...any) error) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	return s.cfg.Client.Query(ctx, text, args, each)
}

// token returns a row's token; "" if there is no row.
func (s *Sink) token(ctx context.Context, at place) (token string, err error) {
	err = s.query(ctx, s.cfg.Dialect.Token, at.args(), func(scan func(...any) error) error {
		return scan(&token)
	})
	return token, err
}
