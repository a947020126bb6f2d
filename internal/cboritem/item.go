// Package cboritem has the parts of CBOR (RFC 8949) that both halves use: the heads of items, and a
// Scanner that reads a document item by item without copying it.
package cboritem

import "math"

// The major types (RFC 8949, 3.1).
const (
	Unsigned = iota
	Negative
	Bytes
	Text
	Array
	Map
	Tag
	Simple
)

// The additional information of some heads: simple values, floats, and an indefinite length.
const (
	False      = 20
	True       = 21
	Null       = 22
	Undefined  = 23
	Half       = 25
	Single     = 26
	Double     = 27
	Indefinite = 31
)

// Break is the byte that ends an item of indefinite length.
const Break = 0xff

// Float decodes the bits of a half, a single or a double.
func Float(info byte, bits uint64) float64 {
	switch info {
	case Double:
		return math.Float64frombits(bits)
	case Single:
		return float64(math.Float32frombits(uint32(bits)))
	}
	sign, exponent, fraction := 1-2*float64(bits>>15), int(bits>>10&31), float64(bits&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction == 0 {
			return math.Inf(int(sign))
		}
		return math.NaN()
	default:
		return sign * math.Ldexp(1024+fraction, exponent-25)
	}
}
