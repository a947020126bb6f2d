package assign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel/keyspace"
)

// Move is a name that is to get another key.
type Move struct {
	Name     string
	From, To keyspace.Key
}

// Plan returns the moves that a plan of package keyspace makes of the names that are known, as
// keyspace.Rebalance and keyspace.RebalanceScratch. Names that are being moved make it ErrMoving:
// see Resume.
func (t *Table) Plan(
	plan func(keyspace.Space, []keyspace.Rated) ([]keyspace.Move, error),
) ([]Move, error) {
	var rated []keyspace.Rated
	names := map[keyspace.Key]string{}
	for _, a := range t.All() {
		if a.To != nil {
			return nil, t.wrap("plan", fmt.Errorf("%q: %w", a.Name, ErrMoving))
		}
		rated, names[a.Key] = append(rated, keyspace.Rated{Key: a.Key, Rate: a.Rate}), a.Name
	}
	planned, err := plan(t.cfg.Space, rated)
	if err != nil {
		return nil, t.wrap("plan", err)
	}
	moves := make([]Move, len(planned))
	for i, m := range planned {
		moves[i] = Move{Name: names[m.From], From: m.From, To: m.To}
		names[m.To] = names[m.From]
	}
	return moves, nil
}

// abortTimeout is the time for taking a move back when it could not be finished.
const abortTimeout = 10 * time.Second

// Move gives names other keys, up to 90 at a time, so that each name keeps its order; see the
// package comment. A name's Use waits from the first step to the last, which takes a few times
// Config.Interval and as long as the applications are behind.
//
// If ctx ends or something fails, what was begun is taken back: those names keep their keys. Where
// that fails too, or the process dies, they wait, until Resume or Abort is called by any process.
//
// Errors wrap ErrUnknown, ErrMoving, ErrChanged (From is not the name's key, or To is taken: plan
// again) and those of DynamoDB and Kinesis.
func (t *Table) Move(ctx context.Context, cfg MoveConfig, moves []Move) error {
	p, err := t.newPassage(ctx, cfg)
	if err != nil {
		return err
	}
	for len(moves) > 0 {
		portion := portionOf(moves)
		moves = moves[len(portion):]
		names := make([]string, len(portion))
		for i, m := range portion {
			names[i] = m.Name
		}
		p.report(Progress{Stage: Moving, Names: names})
		err := t.begin(ctx, portion)
		if err == nil {
			err = p.finish(ctx, names)
		}
		if err != nil {
			return t.takeBack(ctx, portion, err)
		}
	}
	return nil
}

// portionOf returns the first moves that can be made at the same time: a name once, and no key
// that another one of them is to free.
func portionOf(moves []Move) []Move {
	names, from := map[string]bool{}, map[keyspace.Key]bool{}
	for i, m := range moves {
		if i == maxChanges || names[m.Name] || from[m.To] {
			return moves[:i]
		}
		names[m.Name], from[m.From] = true, true
	}
	return moves
}

// Resume finishes the moves that a process has left, and returns their names.
func (t *Table) Resume(ctx context.Context, cfg MoveConfig) ([]string, error) {
	p, err := t.newPassage(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := t.Refresh(ctx); err != nil {
		return nil, err
	}
	names := t.Moving()
	for portion := range slices.Chunk(names, maxChanges) {
		p.report(Progress{Stage: Moving, Names: portion})
		if err := p.finish(ctx, portion); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// Moving returns the names that are known to be moving, in their order, without a call.
func (t *Table) Moving() []string {
	var names []string
	for _, a := range t.All() {
		if a.To != nil {
			names = append(names, a.Name)
		}
	}
	return names
}

// Abort takes moves back that are not finished: the names keep their keys. Nothing was put under
// the others. Names that are not moving are passed over.
func (t *Table) Abort(ctx context.Context, names ...string) error {
	for portion := range slices.Chunk(names, maxChanges) {
		err := t.abort(ctx, portion, func(*entry) bool { return true })
		if err != nil {
			return err
		}
	}
	return nil
}

// abort takes back the moves of names that which selects.
func (t *Table) abort(ctx context.Context, names []string, which func(*entry) bool) error {
	if err := t.Refresh(ctx); err != nil { // a write may have come without an answer
		return err
	}
	return t.commit(ctx, func(s *state) ([]change, error) {
		var changes []change
		for _, name := range names {
			if e := s.moving[name]; e != nil && which(e) {
				changes = append(changes, change{Op: opAbort, Name: name})
			}
		}
		return changes, nil
	})
}

// takeBack aborts moves, of which one failed for err. Those of another process to other keys are
// left alone.
func (t *Table) takeBack(ctx context.Context, moves []Move, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	names, to := make([]string, len(moves)), make(map[string]keyspace.Key, len(moves))
	for i, m := range moves {
		names[i], to[m.Name] = m.Name, m.To
	}
	failed := t.abort(ctx, names, func(e *entry) bool { return *e.To == to[e.name] })
	if failed != nil {
		return errors.Join(err, fmt.Errorf("records of %d names wait until the move is resumed or "+
			"aborted: %w", len(names), failed))
	}
	return err
}

// begin logs that names are moving.
func (t *Table) begin(ctx context.Context, moves []Move) error {
	return t.commit(ctx, func(s *state) ([]change, error) {
		var changes []change
		for _, m := range moves {
			e := s.names[m.Name]
			fail := func(err error) ([]change, error) {
				return nil, t.wrap("move", fmt.Errorf("%q: %w", m.Name, err))
			}
			switch {
			case e == nil:
				return fail(ErrUnknown)
			case e.To != nil && *e.To == m.To && e.Key == m.From:
				continue // it was this call's write, the answer of which was lost
			case e.To != nil:
				return fail(ErrMoving)
			case e.Key != m.From || s.allocator.Has(m.To):
				return fail(ErrChanged)
			}
			changes = append(changes, change{Op: opMoving, Name: m.Name, Key: m.To.String()})
		}
		return changes, nil
	})
}

// end logs that names have moved, from the rows given.
func (t *Table) end(ctx context.Context, moving map[string]row) error {
	return t.commit(ctx, func(s *state) ([]change, error) {
		var changes []change
		for name, before := range moving {
			switch e := s.names[name]; {
			case e != nil && e.Since == before.Since:
				changes = append(changes, change{Op: opMoved, Name: name})
			case e != nil && e.Key == *before.To: // by this call, or one of another process
			default:
				return nil, t.wrap("move", fmt.Errorf("%q: %w", name, ErrChanged))
			}
		}
		return changes, nil
	})
}
