package kinesis

import (
	"errors"
	"math/bits"

	"github.com/runnel-stream/runnel/internal/shardid"
)

// sequenceNumber holds the parts of a sequence number of AWS's layout, version 2. The number has
// 186 bits, 47 hexadecimal digits (from the top):
//
//	digits  0     the marker 2
//	        1-9   created
//	        10    the lowest four bits of shard
//	        11-26 serial: see shardlog.Number
//	        27-28 zero
//	        29-37 arrival
//	        38-45 shard
//	        46    the version, 2
//
// So numbers order by the shard's creation, then by serial. All have 56 decimal digits. The layout
// is known from open-source servers that compared theirs with AWS's, and holds for the examples in
// AWS's documentation. Clients may rely on nothing but the order.
type sequenceNumber struct {
	version int
	created int64  // the shard's creation, seconds since 1970, below 2^36
	shard   uint32 // the number in the shard's id, below 2^31
	index   uint64 // the record's serial in the shard, from 1 on; 0 is the shard's start
	arrival int64  // seconds since 1970, below 2^36
}

const (
	numberVersion = 2
	// endIndex is the index in a closed shard's EndingSequenceNumber.
	endIndex = 0x7fffffffffffffff
	// createdLimit bounds the creation second of a valid number.
	createdLimit = 16025175000
)

// errNumber is returned for a text that is no sequence number of any known version.
var errNumber = errors.New("not a sequence number")

// appendText appends the number in decimal.
func (n sequenceNumber) appendText(dst []byte) []byte {
	created, arrival := uint64(n.created), uint64(n.arrival)
	return words{
		numberVersion | uint64(n.shard)<<4 | arrival<<36,
		arrival>>28 | n.index<<16,
		n.index>>48 | uint64(n.shard&0xf)<<16 | created<<20 | 2<<56,
	}.appendText(dst)
}

func (n sequenceNumber) String() string { return string(n.appendText(nil)) }

// parseNumber reads a sequence number: of version 2 with full validation, of the versions 0 and
// 1, which very old streams had, as far as the errors need it.
func parseNumber(text string) (sequenceNumber, error) {
	w, ok := parseWords(text)
	if !ok {
		return sequenceNumber{}, errNumber
	}
	if w.bitLen() <= 124 { // AWS counts small numbers, as "0", as version 0
		w[1] |= 1 << 60
	}
	var n sequenceNumber
	switch {
	case w.bitLen() == 125:
		n = sequenceNumber{
			created: int64(w.field(88, 36)),
			shard:   uint32(w.field(0, 16)),
		}
	case w.field(184, 8) != 2:
		return n, errNumber
	case w.field(0, 4) == 1:
		n = sequenceNumber{
			version: 1,
			created: int64(w.field(148, 36)),
			arrival: int64(w.field(100, 36)),
			index:   w.field(36, 8),
			shard:   uint32(w.field(4, 32)),
		}
	case w.field(0, 4) == numberVersion:
		n = sequenceNumber{
			version: numberVersion,
			created: int64(w.field(148, 36)),
			index:   w.field(80, 64),
			arrival: int64(w.field(36, 36)),
			shard:   uint32(w.field(4, 32)),
		}
		if n.index > endIndex || w.field(72, 8) != 0 || w.field(144, 4) != uint64(n.shard&0xf) {
			return n, errNumber
		}
	default:
		return n, errNumber
	}
	if n.created >= createdLimit || n.shard > shardid.Max {
		return n, errNumber
	}
	return n, nil
}

// words is an unsigned integer of 192 bits, the lowest first.
type words [3]uint64

const tenTo19 = 10_000_000_000_000_000_000 // the largest power of ten in 64 bits

// twoDigits holds the numbers from 00 to 99: with single digits, this conversion would take half of
// the time of reading records.
var twoDigits = func() (p [200]byte) {
	for i := range p {
		p[i] = '0' + byte(i/2/10)
		if i%2 == 1 {
			p[i] = '0' + byte(i/2%10)
		}
	}
	return p
}()

// appendText appends w in decimal without leading zeros; w must be below 10^57, as every
// number of 188 bits is.
func (w words) appendText(dst []byte) []byte {
	var digits [57]byte
	for at := len(digits); at > 0; at -= 19 {
		var chunk uint64
		w[2], chunk = w[2]/tenTo19, w[2]%tenTo19
		w[1], chunk = bits.Div64(chunk, w[1], tenTo19)
		w[0], chunk = bits.Div64(chunk, w[0], tenTo19)
		for i := at - 2; i > at-19; i -= 2 {
			pair := chunk % 100 * 2
			digits[i], digits[i+1] = twoDigits[pair], twoDigits[pair+1]
			chunk /= 100
		}
		digits[at-19] = '0' + byte(chunk)
	}
	from := 0
	for from < len(digits)-1 && digits[from] == '0' {
		from++
	}
	return append(dst, digits[from:]...)
}

// parseWords reads a decimal integer without leading zeros, below 2^192.
func parseWords(text string) (w words, ok bool) {
	if text == "" || len(text) > 58 || (text[0] == '0' && len(text) > 1) {
		return w, false
	}
	for i := range len(text) {
		carry := uint64(text[i] - '0')
		if carry > 9 {
			return w, false
		}
		for j := range w {
			hi, lo := bits.Mul64(w[j], 10)
			var over uint64
			w[j], over = bits.Add64(lo, carry, 0)
			carry = hi + over
		}
		if carry > 0 {
			return w, false
		}
	}
	return w, true
}

func (w words) bitLen() int {
	for i := len(w) - 1; i >= 0; i-- {
		if w[i] != 0 {
			return 64*i + bits.Len64(w[i])
		}
	}
	return 0
}

// field returns the n bits (at most 64) of w from bit at on.
func (w words) field(at, n int) uint64 {
	i, shift := at/64, at%64
	value := w[i] >> shift
	if shift > 0 && i+1 < len(w) {
		value |= w[i+1] << (64 - shift)
	}
	return value & (^uint64(0) >> (64 - n))
}
