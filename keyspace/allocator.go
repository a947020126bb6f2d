package keyspace

import (
	"errors"
	"fmt"
	"iter"
	"math"
)

// Allocator gives out keys so that they stay spread evenly over the space, whatever was there
// before: explicit hash keys for tenants, devices or accounts, that fall evenly on the shards
// of a stream however often these are split in halves or merged again.
//
// The keys stand in a tree of halves. The middle of the space is the first key, then comes the
// middle of the half that carries less, and within it the same again. A middle that is free is
// always taken, before anything below it. What a half carries is the sum of its keys' rates,
// with the middle in the right half, as it will be in the right shard after a split. Of halves
// that carry the same, the one with fewer keys beside its first one is chosen, and of equal
// ones the left one. A half that is full never is.
//
// With all rates equal, as with Add and Allocate, the balance is that of the numbers of keys:
// an empty Allocator gives the keys of Space.Nth in their order, two halves differ by one key at
// most, and of keys that are released the same ones come back first. With other rates, the
// halves that an empty Allocator filled differ by the largest rate at most, until one is full.
//
// What it gives next depends on the keys that it holds alone, not on how they came there. Add,
// Allocate and Release take at most 129 steps each; memory is at most two nodes of 80 bytes for
// a key. The zero value is empty, over all 2^128 hash keys. It is used by one
// goroutine at a time.
type Allocator struct {
	space Space
	root  *node
}

// Rated is a key and what it carries.
type Rated struct {
	Key Key
	// Rate is in any unit that is the same for all: records or bytes a second, 1 for each. 0 is
	// a key that carries nothing. All rates of an Allocator together are below 2^64.
	Rate uint64
}

// Errors of an Allocator. They are wrapped with the key's or the space's numbers.
var (
	ErrFull    = errors.New("the key space is full")
	ErrOutside = errors.New("the key is not in the key space")
	ErrTaken   = errors.New("the key is taken already")
	ErrFree    = errors.New("the key is not taken")
	ErrRate    = errors.New("the rates together are 2^64 or more: use a larger unit")
)

// NewAllocator returns an empty allocator of the space's keys.
func NewAllocator(space Space) *Allocator { return &Allocator{space: space} }

// Add takes keys that are in use, in any order, each with a rate of 1. Of a key that is outside
// of the space or taken already, also by another of keys, it returns an error that names it and
// wraps ErrOutside or ErrTaken. Then the allocator is as it was.
func (a *Allocator) Add(keys ...Key) error {
	for i, key := range keys {
		if err := a.add(Rated{Key: key, Rate: 1}); err != nil {
			for _, added := range keys[:i] {
				a.remove(added)
			}
			return err
		}
	}
	return nil
}

// AddRated is Add for keys with rates of their own. It returns ErrRate too.
func (a *Allocator) AddRated(keys ...Rated) error {
	for i, key := range keys {
		if err := a.add(key); err != nil {
			for _, added := range keys[:i] {
				a.remove(added.Key)
			}
			return err
		}
	}
	return nil
}

func (a *Allocator) add(r Rated) error {
	switch {
	case !a.space.Contains(r.Key):
		return fmt.Errorf("%w: %s: want 0 to %s", ErrOutside, r.Key, a.space.Last())
	case a.Has(r.Key):
		return fmt.Errorf("%w: %s", ErrTaken, r.Key)
	case r.Rate > math.MaxUint64-a.root.load():
		return fmt.Errorf("%w: %s with a rate of %d", ErrRate, r.Key, r.Rate)
	}
	a.insert(r)
	return nil
}

// Allocate takes a free key, with a rate of 1, and returns it. It returns ErrFull when every
// key of the space is taken.
func (a *Allocator) Allocate() (Key, error) { return a.AllocateRated(1) }

// AllocateRated is Allocate for a key that will carry rate. It returns ErrRate too.
func (a *Allocator) AllocateRated(rate uint64) (Key, error) {
	switch {
	case a.root != nil && Key{Lo: uint64(a.root.count - 1)} == a.space.Last():
		return Key{}, fmt.Errorf("%w: all its %s keys are taken", ErrFull, a.space)
	case rate > math.MaxUint64-a.root.load():
		return Key{}, fmt.Errorf("%w: a new key with a rate of %d", ErrRate, rate)
	}
	return a.takeBest(rate), nil
}

// Release gives a key back. A key that is not taken is an error that names it and wraps
// ErrFree.
func (a *Allocator) Release(key Key) error {
	if !a.Has(key) {
		return fmt.Errorf("%w: %s", ErrFree, key)
	}
	a.remove(key)
	return nil
}

// Has reports whether the key is taken.
func (a *Allocator) Has(key Key) bool {
	n := a.root
	for n != nil && n.cell.contains(key) {
		switch key.Compare(n.cell.middle()) {
		case 0:
			return n.taken
		case -1:
			n = n.left
		default:
			n = n.right
		}
	}
	return false
}

// Len returns how many keys are taken.
func (a *Allocator) Len() int { return a.root.size() }

// Rate returns the sum of the rates of the keys that are taken.
func (a *Allocator) Rate() uint64 { return a.root.load() }

// Space returns the space whose keys it gives.
func (a *Allocator) Space() Space { return a.space }

// All returns the keys that are taken, in ascending order. The allocator must not be changed
// meanwhile.
func (a *Allocator) All() iter.Seq[Rated] {
	return func(yield func(Rated) bool) { a.root.each(yield) }
}
