package keytable

import (
	"fmt"

	"github.com/runnel-stream/runnel/keyspace/allocate"
)

// state is the table at a version. Processes with the same version have the same state, so each of
// them computes the same best key.
type state struct {
	version   int64
	names     map[string]*entry
	moving    map[string]*entry
	allocator *allocate.Allocator
}

// entry is the row of a name, with the records that this process has in flight under it.
type entry struct {
	row
	name string
	text string // Key in decimal
	uses int    // records in flight
	done func() // ends a use; nil before the first one
}

func newState(space allocate.Space, version int64) *state {
	return &state{
		version: version, names: map[string]*entry{}, moving: map[string]*entry{},
		allocator: allocate.New(space),
	}
}

// set sets the row of a name; nil removes it. If a key is taken already, the error wraps
// ErrDamagedTable.
func (s *state) set(name string, after *row) error {
	e := s.names[name]
	if e != nil {
		for _, k := range e.keys() {
			if err := s.allocator.Release(k.Key); err != nil {
				return fmt.Errorf("%w: name %q: %w", ErrDamagedTable, name, err)
			}
		}
	}
	delete(s.moving, name)
	if after == nil {
		delete(s.names, name)
		return nil
	}
	if err := s.allocator.AddRated(after.keys()...); err != nil {
		return fmt.Errorf("%w: name %q: %w", ErrDamagedTable, name, err)
	}
	if e == nil {
		e = &entry{name: name}
		s.names[name] = e
	}
	e.row, e.text = *after, after.Key.String()
	if e.To != nil {
		s.moving[name] = e
	}
	return nil
}

// apply applies the changes of the next version.
func (s *state) apply(version int64, changes []change) error {
	for _, c := range changes {
		if err := s.set(c.Name, c.apply(s.row(c.Name), version)); err != nil {
			return err
		}
	}
	s.version = version
	return nil
}

func (s *state) row(name string) *row {
	if e := s.names[name]; e != nil {
		r := e.row
		return &r
	}
	return nil
}

// drained returns the highest version that this process has drained: it has no records in flight
// under the old keys of names that were moving at that version.
func (s *state) drained() int64 {
	version := s.version
	for _, e := range s.moving {
		if e.uses > 0 {
			version = min(version, e.Since-1)
		}
	}
	return version
}
