// Package keyspace computes with the hash keys of a Kinesis stream: 128-bit unsigned integers, the
// ranges of them that shards own, and the MD5 routing from a partition key to a hash key. It is
// pure: no I/O, no goroutine, no clock. All its values are safe for concurrent use.
//
//	hash := keyspace.Of("customer-1")
//	shard := keyspace.Locate(keyspace.Uniform(4), hash) // of a new stream with four shards
//
// The packages below it build on these: allocate chooses evenly spread keys, load measures the load
// of shards, and plan computes the splits and merges of a reshard.
package keyspace

import (
	"crypto/md5" //nolint:gosec // the routing function of the Kinesis API, not a security measure
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// Key is a hash key: an unsigned integer in [0, 2^128 - 1], as its high and low 64 bits. The zero
// value is the smallest key. Keys are values and compare with ==.
type Key struct {
	Hi, Lo uint64 // its high and its low 64 bits
}

// Max returns the largest hash key, 2^128 - 1.
func Max() Key { return Key{Hi: ^uint64(0), Lo: ^uint64(0)} }

// ErrKeySyntax is wrapped by the error of Parse for a text that is not a hash key.
var ErrKeySyntax = errors.New("not a hash key: want a decimal integer in [0, 2^128-1]")

// Of returns the hash key of a partition key: the MD5 digest of its UTF-8 bytes, read as a
// big-endian integer (AWS, "PutRecord": "An MD5 hash function is used to map partition keys
// to 128-bit integer values").
func Of(partitionKey string) Key {
	sum := md5.Sum([]byte(partitionKey)) //nolint:gosec // see the import
	return Key{Hi: binary.BigEndian.Uint64(sum[:8]), Lo: binary.BigEndian.Uint64(sum[8:])}
}

// Parse reads a decimal hash key as the API writes it: "0", or digits without a leading zero. Any
// other text is an error that wraps ErrKeySyntax.
func Parse(text string) (Key, error) {
	if text == "" || len(text) > 39 || (text[0] == '0' && len(text) > 1) {
		return Key{}, fmt.Errorf("%w: %q", ErrKeySyntax, text)
	}
	var k Key
	for i := range len(text) {
		digit := text[i] - '0'
		if digit > 9 {
			return Key{}, fmt.Errorf("%w: %q", ErrKeySyntax, text)
		}
		var over bool
		if k, over = k.timesTenPlus(uint64(digit)); over {
			return Key{}, fmt.Errorf("%w: %q", ErrKeySyntax, text)
		}
	}
	return k, nil
}

// timesTenPlus returns 10k + digit, and whether the sum is above Max.
func (k Key) timesTenPlus(digit uint64) (Key, bool) {
	carry, lo := bits.Mul64(k.Lo, 10)
	over, hi := bits.Mul64(k.Hi, 10)
	lo, c := bits.Add64(lo, digit, 0)
	carry += c // at most 9 + 1: no overflow
	hi, c = bits.Add64(hi, carry, 0)
	return Key{Hi: hi, Lo: lo}, over+c > 0
}

// String returns the key in decimal, as the API writes it.
func (k Key) String() string {
	return string(k.AppendText(nil))
}

// AppendText appends the key in decimal to dst.
func (k Key) AppendText(dst []byte) []byte {
	const chunk = 10_000_000_000_000_000_000 // 10^19, the largest power of ten in 64 bits
	var digits [39]byte
	at := len(digits)
	for k.Hi > 0 { // 2^64 > chunk, so a quotient remains, and the text begins with its digits
		var low uint64
		k.Hi, low = k.Hi/chunk, k.Hi%chunk
		k.Lo, low = bits.Div64(low, k.Lo, chunk)
		for range 19 {
			at--
			digits[at] = '0' + byte(low%10)
			low /= 10
		}
	}
	for k.Lo > 0 {
		at--
		digits[at] = '0' + byte(k.Lo%10)
		k.Lo /= 10
	}
	if at == len(digits) {
		return append(dst, '0')
	}
	return append(dst, digits[at:]...)
}

// Compare returns -1, 0 or 1 as k is below, equal to or above other.
func (k Key) Compare(other Key) int {
	switch {
	case k == other:
		return 0
	case k.Hi < other.Hi || (k.Hi == other.Hi && k.Lo < other.Lo):
		return -1
	default:
		return 1
	}
}

// Less reports whether k is below other.
func (k Key) Less(other Key) bool { return k.Compare(other) < 0 }

// Add returns k + other, modulo 2^128.
func (k Key) Add(other Key) Key {
	lo, carry := bits.Add64(k.Lo, other.Lo, 0)
	hi, _ := bits.Add64(k.Hi, other.Hi, carry)
	return Key{Hi: hi, Lo: lo}
}

// Sub returns k - other, modulo 2^128.
func (k Key) Sub(other Key) Key {
	lo, borrow := bits.Sub64(k.Lo, other.Lo, 0)
	hi, _ := bits.Sub64(k.Hi, other.Hi, borrow)
	return Key{Hi: hi, Lo: lo}
}

// Half returns k / 2, rounded down.
func (k Key) Half() Key {
	return Key{Hi: k.Hi >> 1, Lo: k.Lo>>1 | k.Hi<<63}
}

// Div returns k / n, rounded down. n must be at least 1.
func (k Key) Div(n uint64) Key { return k.mulDiv(1, n) }

// Fraction returns k / 2^128, in [0, 1]. Use it for drawings only: a float64 holds 53 of the 128
// bits.
func (k Key) Fraction() float64 {
	return (float64(k.Hi) + float64(k.Lo)/(1<<64)) / (1 << 64)
}

// mulDiv returns k*a/b, rounded down, for a <= b and b > 0.
func (k Key) mulDiv(a, b uint64) Key {
	h1, l1 := bits.Mul64(k.Hi, a)
	h0, l0 := bits.Mul64(k.Lo, a)
	mid, carry := bits.Add64(l1, h0, 0)
	top := h1 + carry
	hi, rest := bits.Div64(top, mid, b) // top < b because a <= b
	lo, _ := bits.Div64(rest, l0, b)
	return Key{Hi: hi, Lo: lo}
}
