// Package allocate chooses hash keys that are spread evenly over a key space: explicit hash keys
// for tenants, devices or accounts, so that each shard of a stream gets the same number of them, or
// the same rate. It is pure: no I/O, no goroutine, no clock.
//
// Space.Nth computes the n-th key of an empty space. An Allocator also knows the keys in use: it
// takes the next key, releases keys, and weighs keys by their rates. Rebalance, RebalanceScratch
// and RebalanceShards compute moves of keys in use to better places. Package keytable shares such
// keys between processes.
package allocate

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/keyspace"
)

// Space is the range of keys [0, size-1] in which keys are balanced. The zero value has the hash
// keys of a stream, all 2^128; smaller spaces are for examples and tests. Spaces are values and
// compare with ==.
type Space struct {
	size keyspace.Key // modulo 2^128: 0 means 2^128
}

// ErrSpaceSize is wrapped by the errors of NewSpace and ParseSpace for an invalid size.
var ErrSpaceSize = errors.New("not the size of a key space: want 1 to 2^128, as 128, 2^7 or 2^128")

// NewSpace returns the space of the keys 0 to size-1. A size of 0 is an error that wraps
// ErrSpaceSize. The space of all 2^128 keys is Space{}, because 2^128 does not fit into a Key.
func NewSpace(size keyspace.Key) (Space, error) {
	if size == (keyspace.Key{}) {
		return Space{}, fmt.Errorf("%w, not 0", ErrSpaceSize)
	}
	return Space{size: size}, nil
}

// ParseSpace reads a size from 1 to 2^128, in decimal or as a power of two: "128", "2^7", "2^128".
// Any other text is an error that wraps ErrSpaceSize.
func ParseSpace(text string) (Space, error) {
	if text == wholeSize {
		return Space{}, nil
	}
	if power, ok := strings.CutPrefix(text, "2^"); ok {
		n, err := strconv.ParseUint(power, 10, 8)
		if err != nil || n > 128 || power != strconv.FormatUint(n, 10) {
			return Space{}, fmt.Errorf("%w: %q", ErrSpaceSize, text)
		}
		return Space{size: powerOfTwo(uint(n))}, nil
	}
	size, err := keyspace.Parse(text)
	if err != nil || size == (keyspace.Key{}) {
		return Space{}, fmt.Errorf("%w: %q", ErrSpaceSize, text)
	}
	return Space{size: size}, nil
}

// wholeSize is 2^128 in decimal.
const wholeSize = "340282366920938463463374607431768211456"

// Last returns the largest key of the space: its size less one.
func (s Space) Last() keyspace.Key { return s.size.Sub(keyspace.Key{Lo: 1}) }

// Contains reports whether k is a key of the space.
func (s Space) Contains(k keyspace.Key) bool { return !s.Last().Less(k) }

// String returns the number of keys in the space, in decimal.
func (s Space) String() string {
	if s.size == (keyspace.Key{}) {
		return wholeSize
	}
	return s.size.String()
}

// Uniform returns n ranges that cut the space into equal parts: each starts at i * floor(size / n).
// The last one ends at keyspace.Max(), so the ranges tile all hash keys. It returns nil unless n is
// in [1, size].
func (s Space) Uniform(n int) []keyspace.Range {
	switch {
	case n < 1 || n > 1 && s.Last().Less(keyspace.Key{Lo: uint64(n - 1)}):
		return nil
	case s.size == (keyspace.Key{}):
		return keyspace.Uniform(n)
	}
	ranges, width := make([]keyspace.Range, n), s.size.Div(uint64(n))
	start := keyspace.Key{}
	for i := range ranges {
		next := start.Add(width)
		ranges[i] = keyspace.Range{Start: start, End: next.Sub(keyspace.Key{Lo: 1})}
		start = next
	}
	ranges[n-1].End = keyspace.Max()
	return ranges
}

// cell returns the cell that is the whole space.
func (s Space) cell() cell { return cell{last: s.Last()} }

// bits returns n and true if the space has 2^n keys.
func (s Space) bits() (n int, ok bool) {
	switch {
	case s.size == (keyspace.Key{}):
		return 128, true
	case bits.OnesCount64(s.size.Hi)+bits.OnesCount64(s.size.Lo) > 1:
		return 0, false
	case s.size.Hi == 0:
		return bits.TrailingZeros64(s.size.Lo), true
	default:
		return 64 + bits.TrailingZeros64(s.size.Hi), true
	}
}

// powerOfTwo returns 2^n modulo 2^128, for n up to 128.
func powerOfTwo(n uint) keyspace.Key {
	if n < 64 {
		return keyspace.Key{Lo: 1 << n}
	}
	return keyspace.Key{Hi: 1 << (n - 64)} // 0 for 128
}
