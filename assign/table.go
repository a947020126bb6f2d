package assign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/runnel-stream/runnel/keyspace"
)

var (
	// ErrUnknown is wrapped for a name that has no key.
	ErrUnknown = errors.New("the name has no key")
	// ErrMoving is wrapped for a name whose key is being moved.
	ErrMoving = errors.New("the name is being moved to another key")
	// ErrInUse is wrapped for a name of which this process has records in flight.
	ErrInUse = errors.New("records of the name are in flight")
	// ErrChanged is wrapped where another process has changed what a decision was made for.
	ErrChanged = errors.New("another process has changed the name's key meanwhile")
)

// Assigned is a name and its key.
type Assigned struct {
	Name string
	Key  keyspace.Key
	Rate uint64
	// To is the key that the name is being moved to; nil if it is not.
	To *keyspace.Key
}

// Table is a table of names and their keys, that processes share. It is safe for concurrent use,
// and has no goroutine of its own: it knows of other processes' changes what Refresh, a write or a
// Session has brought.
type Table struct {
	cfg  Config
	turn chan struct{} // held while the table is written or read; capacity 1
	mu   struct {
		sync.Mutex // not held over I/O
		state      *state
		changed    chan struct{}  // closed, and another one made, when a Use may go on
		session    *Session       // nil without one
		wanted     map[string]int // names without a key, and how many wait for it
	}
}

// Open opens a table, makes it if it is not there, and reads all names. Errors wrap ErrOther for
// a table that cannot be used, ErrDamaged, or are those of DynamoDB.
func Open(ctx context.Context, cfg Config) (*Table, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	t := &Table{cfg: cfg.withDefaults(), turn: make(chan struct{}, 1)}
	t.mu.state, t.mu.changed = newState(cfg.Space, 0), make(chan struct{})
	t.mu.wanted = map[string]int{}
	if err := t.ensure(ctx); err != nil {
		return nil, err
	}
	if err := t.rescan(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// Key returns the key of a name, and gives it the one that balances best, with a rate of 1, if
// it has none. Names that are known are looked up in memory, new ones of many goroutines are
// written together. A key may be moved at any time: what puts records uses Session.Use.
//
// Errors wrap ErrName, keyspace.ErrFull, or are those of DynamoDB; a call that failed may be made
// again.
func (t *Table) Key(ctx context.Context, name string) (keyspace.Key, error) {
	if a, known := t.Lookup(name); known {
		return a.Key, nil
	}
	if err := checkName(name); err != nil {
		return keyspace.Key{}, err
	}
	t.want(name, 1)
	defer t.want(name, -1)
	err := t.commit(ctx, func(s *state) ([]change, error) {
		if s.names[name] != nil {
			return nil, nil
		}
		names := t.together(name)
		changes, err := s.assign(1, names)
		if errors.Is(err, keyspace.ErrFull) {
			return s.assign(1, names[:1])
		}
		return changes, err
	})
	if err != nil {
		return keyspace.Key{}, err
	}
	a, known := t.Lookup(name)
	if !known { // another process has released it since
		return keyspace.Key{}, t.wrap("assign", fmt.Errorf("%q: %w", name, ErrChanged))
	}
	return a.Key, nil
}

// want adds to how many wait for a name's key.
func (t *Table) want(name string, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.wanted[name] += waiting; t.mu.wanted[name] == 0 {
		delete(t.mu.wanted, name)
	}
}

// together returns a name and others that wait for their keys. The caller holds mu.
func (t *Table) together(name string) []string {
	names := []string{name}
	for other := range t.mu.wanted {
		if len(names) == maxChanges {
			break
		}
		if other != name {
			names = append(names, other)
		}
	}
	return names
}

// Assign is Key for many names in their order, up to 90 in a write. Those without a key get one
// that will carry rate; others keep theirs, and their rate. Where it fails, the first of them may
// have been written.
func (t *Table) Assign(ctx context.Context, rate uint64, names ...string) ([]Assigned, error) {
	for _, name := range names {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	var assigned []Assigned
	for portion := range slices.Chunk(names, maxChanges) {
		err := t.commit(ctx, func(s *state) ([]change, error) {
			return s.assign(rate, portion)
		})
		if err != nil {
			return nil, err
		}
		for _, name := range portion {
			a, known := t.Lookup(name)
			if !known { // another process has released it since
				return nil, t.wrap("assign", fmt.Errorf("%q: %w", name, ErrChanged))
			}
			assigned = append(assigned, a)
		}
	}
	return assigned, nil
}

// assign returns the changes that give names keys, unless they have one.
func (s *state) assign(rate uint64, names []string) (changes []change, err error) {
	var keys []keyspace.Key
	defer func() { // the state is as it was: it changes when the write has succeeded
		for _, key := range keys {
			_ = s.allocator.Release(key) // it was just taken
		}
	}()
	given := map[string]bool{}
	for _, name := range names {
		if s.names[name] != nil || given[name] {
			continue
		}
		key, err := s.allocator.AllocateRated(rate)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		keys, given[name] = append(keys, key), true
		changes = append(changes,
			change{Op: opAssign, Name: name, Key: key.String(), Rate: rate})
	}
	return changes, nil
}

// Release takes names out of the table, all of up to 90 or none, so that their keys are free:
// for names that no process uses any more, and whose records are read, since the next name may get
// such a key. Errors wrap ErrUnknown, ErrMoving or ErrInUse and name the first such one.
func (t *Table) Release(ctx context.Context, names ...string) error {
	for portion := range slices.Chunk(names, maxChanges) {
		sent := false // what is gone then went by this write, or by another's
		err := t.commit(ctx, func(s *state) ([]change, error) {
			var changes []change
			for _, name := range portion {
				switch e := s.names[name]; {
				case e == nil && sent:
					continue
				case e == nil:
					return nil, t.wrap("release", fmt.Errorf("%q: %w", name, ErrUnknown))
				case e.To != nil:
					return nil, t.wrap("release", fmt.Errorf("%q: %w", name, ErrMoving))
				case e.uses > 0:
					return nil, t.wrap("release", fmt.Errorf("%q: %w", name, ErrInUse))
				}
				changes = append(changes, change{Op: opRelease, Name: name})
			}
			sent = true
			return changes, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Lookup returns what is known of a name, without a call.
func (t *Table) Lookup(name string) (Assigned, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.mu.state.names[name]
	if e == nil {
		return Assigned{}, false
	}
	return e.assigned(), true
}

func (e *entry) assigned() Assigned {
	return Assigned{Name: e.name, Key: e.Key, Rate: e.Rate, To: e.To}
}

// All returns the names that are known, in their order, without a call.
func (t *Table) All() []Assigned {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Assigned, 0, len(t.mu.state.names))
	for _, e := range t.mu.state.names {
		all = append(all, e.assigned())
	}
	slices.SortFunc(all, func(a, b Assigned) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Name returns the table's name.
func (t *Table) Name() string { return t.cfg.Table }

func (t *Table) version() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.state.version
}

// advance takes the state to the next version.
func (t *Table) advance(version int64, changes []change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.broadcast()
	return t.wrap("apply a change", t.mu.state.apply(version, changes))
}

// replace puts what was scanned in the state's place. The names that were known keep what this
// process has in flight of them.
func (t *Table) replace(version int64, rows map[string]*row) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.broadcast()
	before := t.mu.state
	s := newState(t.cfg.Space, version)
	for name, r := range rows {
		if err := s.set(name, r); err != nil {
			return t.wrap("scan", err)
		}
	}
	for name, e := range s.names {
		if known := before.names[name]; known != nil {
			known.row, known.text = e.row, e.text
			s.names[name] = known
			if known.To != nil {
				s.moving[name] = known
			}
		}
	}
	t.mu.state = s
	return nil
}

// broadcast wakes every Use that waits. The caller holds mu.
func (t *Table) broadcast() {
	close(t.mu.changed)
	t.mu.changed = make(chan struct{})
}

// take waits for the turn to read or write.
func (t *Table) take(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return t.wrap("wait for the turn", context.Cause(ctx))
	}
}

func (t *Table) give() { <-t.turn }

func (t *Table) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, t.cfg.CallTimeout)
}

func (t *Table) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: key table %s: %w", op, t.cfg.Table, err)
}
