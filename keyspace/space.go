package keyspace

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Space is the keys from 0 to a last one, over which keys are balanced. The zero value is the
// hash keys of a stream, all 2^128; smaller ones are for numbers that are easy to follow.
// Spaces are values and compare with ==.
type Space struct {
	size Key // modulo 2^128: 0 is 2^128
}

// ErrSpace is returned for a size that no space has.
var ErrSpace = errors.New("not the size of a key space: want 1 to 2^128, as 128, 2^7 or 2^128")

// NewSpace returns the space of the keys 0 to size-1. A size of 0 is ErrSpace; Space{} is the
// space of 2^128 keys, whose size is no Key.
func NewSpace(size Key) (Space, error) {
	if size == (Key{}) {
		return Space{}, fmt.Errorf("%w, not 0", ErrSpace)
	}
	return Space{size: size}, nil
}

// ParseSpace reads a size in decimal, or as a power of two: "128", "2^7", "2^128". Any other
// text is an error that wraps ErrSpace.
func ParseSpace(text string) (Space, error) {
	if text == wholeSize {
		return Space{}, nil
	}
	if power, ok := strings.CutPrefix(text, "2^"); ok {
		n, err := strconv.ParseUint(power, 10, 8)
		if err != nil || n > 128 || power != strconv.FormatUint(n, 10) {
			return Space{}, fmt.Errorf("%w: %q", ErrSpace, text)
		}
		return Space{size: powerOfTwo(uint(n))}, nil
	}
	size, err := Parse(text)
	if err != nil || size == (Key{}) {
		return Space{}, fmt.Errorf("%w: %q", ErrSpace, text)
	}
	return Space{size: size}, nil
}

// wholeSize is 2^128.
const wholeSize = "340282366920938463463374607431768211456"

// Last returns the largest key of the space, which is its size less one.
func (s Space) Last() Key { return s.size.Sub(Key{Lo: 1}) }

// Contains reports whether k is a key of the space.
func (s Space) Contains(k Key) bool { return !s.Last().Less(k) }

// String returns how many keys the space has, in decimal.
func (s Space) String() string {
	if s.size == (Key{}) {
		return wholeSize
	}
	return s.size.String()
}

// Uniform returns n ranges that cut the space into equal parts: each starts at
// i * floor(size / n), and the last one ends at Max, so that they tile all hash keys. It returns
// nil unless n is at least 1 and at most the size.
func (s Space) Uniform(n int) []Range {
	switch {
	case n < 1 || n > 1 && s.Last().Less(Key{Lo: uint64(n - 1)}):
		return nil
	case s.size == (Key{}):
		return Uniform(n)
	}
	ranges, width := make([]Range, n), s.size.mulDiv(1, uint64(n))
	start := Key{}
	for i := range ranges {
		next := start.Add(width)
		ranges[i] = Range{Start: start, End: next.Sub(Key{Lo: 1})}
		start = next
	}
	ranges[n-1].End = Max
	return ranges
}

// cell returns the whole space.
func (s Space) cell() cell { return cell{last: s.Last()} }

// bits returns the n of a space of 2^n keys.
func (s Space) bits() (n int, ok bool) {
	switch {
	case s.size == (Key{}):
		return 128, true
	case bits.OnesCount64(s.size.Hi)+bits.OnesCount64(s.size.Lo) > 1:
		return 0, false
	case s.size.Hi == 0:
		return bits.TrailingZeros64(s.size.Lo), true
	default:
		return 64 + bits.TrailingZeros64(s.size.Hi), true
	}
}

// powerOfTwo returns 2^n modulo 2^128, for an n of at most 128.
func powerOfTwo(n uint) Key {
	if n < 64 {
		return Key{Lo: 1 << n}
	}
	return Key{Hi: 1 << (n - 64)} // 0 for 128
}
