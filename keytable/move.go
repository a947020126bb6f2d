package keytable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// Move is the move of a name to another key.
type Move struct {
	Name     string       // the name that moves
	From, To keyspace.Key // its present key, and the new one
}

// Plan returns the moves that plan computes for all known names, such as allocate.Rebalance or
// allocate.RebalanceScratch. While names are moving, its error wraps ErrNameMoving: see Resume.
func (t *Table) Plan(
	plan func(allocate.Space, []allocate.Rated) ([]allocate.Move, error),
) ([]Move, error) {
	var rated []allocate.Rated
	names := map[keyspace.Key]string{}
	for _, a := range t.All() {
		if a.To != nil {
			return nil, t.wrap("plan", fmt.Errorf("%q: %w", a.Name, ErrNameMoving))
		}
		rated, names[a.Key] = append(rated, allocate.Rated{Key: a.Key, Rate: a.Rate}), a.Name
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

// abortTimeout limits the time to revert a failed move.
const abortTimeout = 10 * time.Second

// Move gives names other keys, up to 90 at a time, and keeps the order of each name; see the
// package comment. Use waits for a moving name during the whole move: a few times Config.Interval,
// and as long as the applications are behind.
//
// If ctx ends or a step fails, Move reverts the moves of the current portion: those names keep
// their keys. If that fails too, or the process dies, Use waits for these names until any process
// calls Resume or Abort.
//
// Errors wrap ErrUnknownName, ErrNameMoving, ErrKeyChanged (From is not the key of the name, or To
// is taken: plan again), ErrNoLeaseTable, or an error of DynamoDB or Kinesis.
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
		p.report(Progress{Stage: StageMoving, Names: names})
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

// portionOf returns the first moves that can run at the same time: each name once, and no To that
// is the From of another one.
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

// Resume finishes the moves that another process has left unfinished, and returns their names.
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
		p.report(Progress{Stage: StageMoving, Names: portion})
		if err := p.finish(ctx, portion); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// Moving returns the known names that are moving, in alphabetical order. It makes no call.
func (t *Table) Moving() []string {
	var names []string
	for _, a := range t.All() {
		if a.To != nil {
			names = append(names, a.Name)
		}
	}
	return names
}

// Abort reverts unfinished moves: the names keep their old keys. No record was put under the new
// ones. Abort skips names that are not moving.
func (t *Table) Abort(ctx context.Context, names ...string) error {
	for portion := range slices.Chunk(names, maxChanges) {
		err := t.abort(ctx, portion, func(*entry) bool { return true })
		if err != nil {
			return err
		}
	}
	return nil
}

// abort reverts the moves of the names for which the filter returns true.
func (t *Table) abort(ctx context.Context, names []string, filter func(*entry) bool) error {
	if err := t.Refresh(ctx); err != nil { // a write with a lost answer may have succeeded
		return err
	}
	return t.commit(ctx, func(s *state) ([]change, error) {
		var changes []change
		for _, name := range names {
			if e := s.moving[name]; e != nil && filter(e) {
				changes = append(changes, change{Op: opAbort, Name: name})
			}
		}
		return changes, nil
	})
}

// takeBack reverts moves after one of them failed with err. It leaves moves that another process
// has begun to other keys.
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

// begin logs that the names are moving.
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
				return fail(ErrUnknownName)
			case e.To != nil && *e.To == m.To && e.Key == m.From:
				continue // the write of this call, with a lost answer
			case e.To != nil:
				return fail(ErrNameMoving)
			case e.Key != m.From || s.allocator.Has(m.To):
				return fail(ErrKeyChanged)
			}
			changes = append(changes, change{Op: opMoving, Name: m.Name, Key: m.To.String()})
		}
		return changes, nil
	})
}

// end logs that the names have moved. moving holds their rows.
func (t *Table) end(ctx context.Context, moving map[string]row) error {
	return t.commit(ctx, func(s *state) ([]change, error) {
		var changes []change
		for name, before := range moving {
			switch e := s.names[name]; {
			case e != nil && e.Since == before.Since:
				changes = append(changes, change{Op: opMoved, Name: name})
			case e != nil && e.Key == *before.To: // moved, by this call or another process
			default:
				return nil, t.wrap("move", fmt.Errorf("%q: %w", name, ErrKeyChanged))
			}
		}
		return changes, nil
	})
}
