package cboritem

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// MaxDepth is the deepest nesting of items that Skip passes.
const MaxDepth = 32

var (
	// ErrMalformed means that the document is not CBOR.
	ErrMalformed = errors.New("malformed CBOR")
	// ErrMismatch means that an item has another type than the caller expects.
	ErrMismatch = errors.New("a CBOR item has an unexpected type")
	// ErrDeep means that items are nested more than MaxDepth deep.
	ErrDeep = errors.New("a CBOR document is nested too deeply")
)

// none is the major type after an error. No item has it.
const none = 0xff

// Scanner reads the items of a document in their order. It accepts every legal encoding: heads of
// any width, definite and indefinite lengths, floats in the place of whole numbers, and tags, which
// it skips. It trusts no length in the document. The first error ends the reading: all later calls
// return zero values. A document that breaks off is io.ErrUnexpectedEOF.
type Scanner struct {
	doc []byte
	at  int // an index and no slice of the rest: to move it costs no write barrier
	err error
}

// NewScanner reads a document. Strings that the scanner returns are valid as long as the document.
func NewScanner(document []byte) Scanner { return Scanner{doc: document} }

// Err returns the first error.
func (s *Scanner) Err() error { return s.err }

// Left returns the number of bytes that have not been read.
func (s *Scanner) Left() int { return len(s.doc) - s.at }

// Fail ends the reading with an error, unless there was one before.
func (s *Scanner) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.at = len(s.doc)
}

// End checks that the document has been read to its end, and returns the first error.
func (s *Scanner) End() error {
	if s.Left() > 0 {
		s.Fail(ErrMalformed)
	}
	return s.err
}

// head reads the head of the next item behind its tags, and returns its argument: a value or a
// length, 0 if the length is indefinite.
func (s *Scanner) head() (major, info byte, argument uint64) {
	for s.err == nil {
		if s.at >= len(s.doc) {
			s.Fail(io.ErrUnexpectedEOF)
			break
		}
		first := s.doc[s.at]
		major, info = first>>5, first&31
		s.at++
		switch {
		case info < 24:
			argument = uint64(info)
		case info <= 27:
			argument = s.wide(1 << (info - 24))
		case info == Indefinite && major >= Bytes && major <= Map:
			argument = 0
		default:
			s.Fail(ErrMalformed)
		}
		if major == Simple && info == 24 && argument < 32 {
			s.Fail(ErrMalformed) // such a value has one byte (RFC 8949, 3.3)
		}
		if major != Tag && s.err == nil {
			return major, info, argument
		}
	}
	return none, 0, 0
}

// wide reads an argument of 1, 2, 4 or 8 bytes.
func (s *Scanner) wide(size int) (argument uint64) {
	if s.Left() < size {
		s.Fail(io.ErrUnexpectedEOF)
		return 0
	}
	rest := s.doc[s.at:]
	switch size {
	case 1:
		argument = uint64(rest[0])
	case 2:
		argument = uint64(binary.BigEndian.Uint16(rest))
	case 4:
		argument = uint64(binary.BigEndian.Uint32(rest))
	default:
		argument = binary.BigEndian.Uint64(rest)
	}
	s.at += size
	return argument
}

// Null reads null or undefined if that is the next item, and reports whether it was.
func (s *Scanner) Null() bool {
	if s.Left() == 0 || s.doc[s.at] != Simple<<5|Null && s.doc[s.at] != Simple<<5|Undefined {
		return false
	}
	s.at++
	return true
}

// IsText reports whether the next item is a text without tags.
func (s *Scanner) IsText() bool { return s.Left() > 0 && s.doc[s.at]>>5 == Text }

// Count is the number of elements or pairs to come; negative if an array or a map has an indefinite
// length.
type Count int64

// Array begins an array. Call More before each element.
func (s *Scanner) Array() Count { return s.begin(Array) }

// Map begins a map. Call More before each pair.
func (s *Scanner) Map() Count { return s.begin(Map) }

func (s *Scanner) begin(want byte) Count {
	major, info, n := s.head()
	switch {
	case major != want:
		s.Fail(ErrMismatch)
	case info == Indefinite:
		return -1
	case n > uint64(s.Left()): // an element has at least one byte
		s.Fail(io.ErrUnexpectedEOF)
	default:
		return Count(n)
	}
	return 0
}

// More reports whether another element or pair follows.
func (s *Scanner) More(left *Count) bool {
	switch {
	case s.err != nil || *left == 0:
		return false
	case *left > 0:
		*left--
		return true
	default:
		return !s.ends()
	}
}

// ends reads the end of an item of indefinite length if it comes next.
func (s *Scanner) ends() bool {
	if s.Left() == 0 {
		s.Fail(io.ErrUnexpectedEOF)
		return true
	}
	if s.doc[s.at] != Break {
		return false
	}
	s.at++
	return true
}

// Text reads a text string. It does not check that it is UTF-8.
func (s *Scanner) Text() []byte { return s.string(Text) }

// Bytes reads a byte string.
func (s *Scanner) Bytes() []byte { return s.string(Bytes) }

// string returns a part of the document, or a copy if the string comes in chunks.
func (s *Scanner) string(want byte) []byte {
	major, info, n := s.head()
	if major != want {
		s.Fail(ErrMismatch)
		return nil
	}
	if info != Indefinite {
		return s.take(n)
	}
	whole := []byte{}
	s.chunks(want, func(chunk []byte) { whole = append(whole, chunk...) })
	return whole
}

// chunks reads the chunks of a string of indefinite length: definite strings of its type.
func (s *Scanner) chunks(want byte, each func([]byte)) {
	for s.err == nil && !s.ends() {
		if s.doc[s.at]>>5 != want || s.doc[s.at]&31 == Indefinite {
			s.Fail(ErrMalformed)
			return
		}
		_, _, n := s.head()
		each(s.take(n))
	}
}

func (s *Scanner) take(n uint64) []byte {
	if n > uint64(s.Left()) {
		s.Fail(io.ErrUnexpectedEOF)
	}
	if s.err != nil {
		return nil
	}
	from := s.at
	s.at += int(n)
	return s.doc[from:s.at:s.at]
}

// Number reads a whole number or a float. If whole is set, it is n, and otherwise f.
func (s *Scanner) Number() (n int64, f float64, whole bool) {
	major, info, argument := s.head()
	switch {
	case major <= Negative && argument > math.MaxInt64:
		s.Fail(ErrMismatch)
	case major == Unsigned:
		return int64(argument), 0, true
	case major == Negative:
		return -1 - int64(argument), 0, true
	case major == Simple && info >= Half && info <= Double:
		return 0, Float(info, argument), false
	default:
		s.Fail(ErrMismatch)
	}
	return 0, 0, true
}

// Skip passes the next item.
func (s *Scanner) Skip() { s.skip(MaxDepth) }

func (s *Scanner) skip(depth int) {
	if depth == 0 {
		s.Fail(ErrDeep)
		return
	}
	major, info, n := s.head()
	switch major {
	case Bytes, Text:
		if info == Indefinite {
			s.chunks(major, func([]byte) {})
		} else {
			s.take(n)
		}
	case Array, Map:
		left := Count(n)
		if info == Indefinite {
			left = -1
		} else if n > uint64(s.Left()) {
			s.Fail(io.ErrUnexpectedEOF)
		}
		for s.More(&left) {
			s.skip(depth - 1)
			if major == Map {
				s.skip(depth - 1)
			}
		}
	}
}
