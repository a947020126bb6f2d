package allocate

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/runnel-stream/runnel/keyspace"
)

// Allocator allocates keys so that all keys in use stay evenly spread over the space, also beside
// keys that something else chose. As explicit hash keys of tenants, devices or accounts, they fall
// evenly on the shards of a stream, however often these are halved or merged again.
//
// The keys form a binary tree. The first key is the middle of the space. Each next key goes to the
// half with the lower rate, then within it again to the half with the lower rate, down to the first
// free middle. The rate of a half is the sum of the rates of its keys; a middle counts for the
// right half, because a split puts it into the right shard. If the rates are equal, the half with
// fewer keys (beside its first one) is chosen, and then the left one. A full half is never chosen.
//
// If all rates are equal, as with Add and Allocate, the numbers of keys are balanced: an empty
// Allocator allocates the keys of Space.Nth in order, the two halves of a cell differ by at most
// one key, and released keys are the first to come back. If the rates differ, the two halves of an
// initially empty Allocator differ by at most the largest rate, until one is full.
//
// The next key depends only on the set of keys in use, not on their history. Add, Allocate and
// Release take at most 129 steps. Each key takes at most two nodes of 80 bytes. The zero value is
// empty and covers all 2^128 hash keys. It is not safe for concurrent use.
type Allocator struct {
	space Space
	root  *node
}

// Rated is a key with its rate.
type Rated struct {
	Key keyspace.Key // one of the keys of the space
	// Rate is in any unit that all keys share: records a second, bytes a second, or 1 for each
	// key. It may be 0. The rates of an Allocator must sum up to less than 2^64.
	Rate uint64
}

// The errors of this package wrap these and name the key or the space.
var (
	ErrSpaceFull    = errors.New("the key space is full")
	ErrOutsideSpace = errors.New("the key is not in the key space")
	ErrKeyTaken     = errors.New("the key is taken already")
	ErrKeyNotTaken  = errors.New("the key is not taken")
	ErrRateOverflow = errors.New("the rates together are 2^64 or more: use a larger unit")
)

// New returns an empty Allocator of the space.
func New(space Space) *Allocator { return &Allocator{space: space} }

// Add takes keys that are already in use, in any order, each with a rate of 1. A key outside of the
// space, or in use already (also by another of keys), is an error that names the key and wraps
// ErrOutsideSpace or ErrKeyTaken. On an error no key is added.
func (a *Allocator) Add(keys ...keyspace.Key) error {
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

// AddRated is Add for keys with rates of their own. Its error may also wrap ErrRateOverflow.
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
		return fmt.Errorf("%w: %s: want 0 to %s", ErrOutsideSpace, r.Key, a.space.Last())
	case a.Has(r.Key):
		return fmt.Errorf("%w: %s", ErrKeyTaken, r.Key)
	case r.Rate > math.MaxUint64-a.root.load():
		return fmt.Errorf("%w: %s with a rate of %d", ErrRateOverflow, r.Key, r.Rate)
	}
	a.insert(r)
	return nil
}

// Allocate takes a free key with a rate of 1, and returns it. If every key of the space is taken,
// the error wraps ErrSpaceFull.
func (a *Allocator) Allocate() (keyspace.Key, error) { return a.AllocateRated(1) }

// AllocateRated is Allocate for a key of the given rate. Its error may also wrap ErrRateOverflow.
func (a *Allocator) AllocateRated(rate uint64) (keyspace.Key, error) {
	switch {
	case a.root != nil && keyspace.Key{Lo: uint64(a.root.count - 1)} == a.space.Last():
		return keyspace.Key{}, fmt.Errorf("%w: all its %s keys are taken", ErrSpaceFull, a.space)
	case rate > math.MaxUint64-a.root.load():
		return keyspace.Key{}, fmt.Errorf("%w: a new key with a rate of %d", ErrRateOverflow, rate)
	}
	return a.takeBest(rate), nil
}

// Release frees a key. If the key is not taken, the error names it and wraps ErrKeyNotTaken.
func (a *Allocator) Release(key keyspace.Key) error {
	if !a.Has(key) {
		return fmt.Errorf("%w: %s", ErrKeyNotTaken, key)
	}
	a.remove(key)
	return nil
}

// Has reports whether the key is taken.
func (a *Allocator) Has(key keyspace.Key) bool {
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

// Len returns the number of taken keys.
func (a *Allocator) Len() int { return a.root.size() }

// Rate returns the sum of the rates of all taken keys.
func (a *Allocator) Rate() uint64 { return a.root.load() }

// Space returns the space of the keys.
func (a *Allocator) Space() Space { return a.space }

// All returns the taken keys in ascending order. Do not change the Allocator during the iteration.
func (a *Allocator) All() iter.Seq[Rated] {
	return func(yield func(Rated) bool) { a.root.each(yield) }
}
