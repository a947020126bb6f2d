package assign

import (
	"fmt"

	"github.com/runnel-stream/runnel/keyspace"
)

// state is the table as of a version. All processes that have the same version have the same
// state, so that each knows which key balances best.
type state struct {
	version   int64
	names     map[string]*entry
	moving    map[string]*entry
	allocator *keyspace.Allocator
}

// entry is a name's row, and what this process does with it.
type entry struct {
	row
	name string
	text string // Key in decimal
	uses int    // records in flight
	done func() // ends a use; nil before the first one
}

func newState(space keyspace.Space, version int64) *state {
	return &state{
		version: version, names: map[string]*entry{}, moving: map[string]*entry{},
		allocator: keyspace.NewAllocator(space),
	}
}

// set puts a row into the state, nil for none. Keys that are taken already are ErrDamaged.
func (s *state) set(name string, after *row) error {
	e := s.names[name]
	if e != nil {
		for _, k := range e.keys() {
			if err := s.allocator.Release(k.Key); err != nil {
				return fmt.Errorf("%w: name %q: %w", ErrDamaged, name, err)
			}
		}
	}
	delete(s.moving, name)
	if after == nil {
		delete(s.names, name)
		return nil
	}
	if err := s.allocator.AddRated(after.keys()...); err != nil {
		return fmt.Errorf("%w: name %q: %w", ErrDamaged, name, err)
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

// apply takes the state to the next version.
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

// drained returns the version up to which this process has nothing in flight under a key that
// a name moves away from.
func (s *state) drained() int64 {
	version := s.version
	for _, e := range s.moving {
		if e.uses > 0 {
			version = min(version, e.Since-1)
		}
	}
	return version
}
