package keytable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/keyspace/allocate"
)

var (
	// ErrUnknownName is wrapped by errors about a name without a key.
	ErrUnknownName = errors.New("the name has no key")
	// ErrNameMoving is wrapped by errors about a name that is moving to another key.
	ErrNameMoving = errors.New("the name is being moved to another key")
	// ErrNameInUse is wrapped by errors about records in flight of this process.
	ErrNameInUse = errors.New("records of the name are in flight")
	// ErrKeyChanged is wrapped if another process has changed the name or the key meanwhile.
	ErrKeyChanged = errors.New("another process has changed the name's key meanwhile")
)

// Assigned is a name with its key.
type Assigned struct {
	Name string       // the name, as of a tenant
	Key  keyspace.Key // the current key
	Rate uint64       // see allocate.Rated
	// To is the new key during a move, else nil.
	To *keyspace.Key
}

// Table is a table of names and their keys that processes share. It is safe for concurrent use, and
// has no goroutine of its own: it learns the changes of other processes from Refresh, its own
// writes and its Session.
type Table struct {
	cfg  Config
	turn chan struct{} // held while the table is written or read; capacity 1
	mu   struct {
		sync.Mutex // not held over I/O
		state      *state
		changed    chan struct{}  // closed and replaced when a waiting Use may continue
		session    *Session       // nil without one
		wanted     map[string]int // names without a key: number of waiting calls
	}
}

// Open opens a table, creates it if it does not exist, and reads all names. Errors wrap
// ErrUnusableTable, ErrDamagedTable, or an error of DynamoDB, or list the faults of the Config.
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

// Key returns the key of a name. A name without a key gets the one that balances best, with a rate
// of 1. Known names are looked up in memory; new names of concurrent calls are written together. A
// key can move at any time, so put records by Session.Use instead.
//
// Errors wrap ErrInvalidName, allocate.ErrSpaceFull, or an error of DynamoDB. A failed call can be
// repeated.
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
		if errors.Is(err, allocate.ErrSpaceFull) {
			return s.assign(1, names[:1])
		}
		return changes, err
	})
	if err != nil {
		return keyspace.Key{}, err
	}
	a, known := t.Lookup(name)
	if !known { // another process has released it since
		return keyspace.Key{}, t.wrap("assign", fmt.Errorf("%q: %w", name, ErrKeyChanged))
	}
	return a.Key, nil
}

// want changes the number of calls that wait for the key of a name.
func (t *Table) want(name string, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.wanted[name] += waiting; t.mu.wanted[name] == 0 {
		delete(t.mu.wanted, name)
	}
}

// together returns a name and other names that wait for keys. The caller holds mu.
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

// Assign is Key for many names, in their order, up to 90 in a write. Names without a key get one
// with the given rate; other names keep their key and their rate. After an error, the first names
// may have their keys.
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
				return nil, t.wrap("assign", fmt.Errorf("%q: %w", name, ErrKeyChanged))
			}
			assigned = append(assigned, a)
		}
	}
	return assigned, nil
}

// assign returns the changes that give keys to names without one.
func (s *state) assign(rate uint64, names []string) (changes []change, err error) {
	var keys []keyspace.Key
	defer func() { // restore the state: only a successful write changes it
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

// Release removes names from the table and frees their keys, up to 90 in a write, all of them or
// none. The next new name may get such a key. So release a name only when no process uses it and
// its records are read. Errors wrap ErrUnknownName, ErrNameMoving or ErrNameInUse and name the
// first such name.
func (t *Table) Release(ctx context.Context, names ...string) error {
	for portion := range slices.Chunk(names, maxChanges) {
		sent := false // then a missing name was released, by this write or another one
		err := t.commit(ctx, func(s *state) ([]change, error) {
			var changes []change
			for _, name := range portion {
				switch e := s.names[name]; {
				case e == nil && sent:
					continue
				case e == nil:
					return nil, t.wrap("release", fmt.Errorf("%q: %w", name, ErrUnknownName))
				case e.To != nil:
					return nil, t.wrap("release", fmt.Errorf("%q: %w", name, ErrNameMoving))
				case e.uses > 0:
					return nil, t.wrap("release", fmt.Errorf("%q: %w", name, ErrNameInUse))
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

// Lookup returns the entry of a name, if it is known. It makes no call.
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

// All returns the known names, sorted. It makes no call.
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

// Name returns the name of the DynamoDB table.
func (t *Table) Name() string { return t.cfg.Table }

func (t *Table) version() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.state.version
}

// advance applies the changes of the next version.
func (t *Table) advance(version int64, changes []change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.broadcast()
	return t.wrap("apply a change", t.mu.state.apply(version, changes))
}

// replace replaces the state by scanned rows. Known names keep their records in flight.
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

// broadcast wakes every waiting Use. The caller holds mu.
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
