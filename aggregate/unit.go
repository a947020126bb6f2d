package aggregate

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
)

// UnitTag is the key of the tag that gives a unit its identity. The unit's first user record has
// it once, with an ASCII value:
//
//	PRODUCER.NUMBER.LOW      as in "AAECAwQFBgcICQoLDA0ODw.17.12"
//	PRODUCER.NUMBER.LOW.u    of a producer that keeps no order
//
// with the producer's 16 bytes in base64 (RFC 4648, section 5, unpadded), and the two numbers
// in decimal from 1 to MaxNumber, without leading zeros. Anything else, or two such tags, is no
// identity. The other records of the unit follow without the tag.
const UnitTag = "rnl"

// MaxNumber is the highest unit number: 2^63 - 1, for languages without unsigned integers.
const MaxNumber = 1<<63 - 1

// Window is the largest distance from a unit's Low to its Number. A producer freezes no unit beyond
// it, which bounds the state of a Filter.
const Window = 65_536

// ProducerID names a producer as a Filter sees it: one group of lanes in one run of package
// producer. 124 of its 128 bits are random there.
type ProducerID [16]byte

// producerCode is strict, so that each id has exactly one text.
var producerCode = base64.RawURLEncoding.Strict()

const producerLength = 22 // of a ProducerID's text

// ErrProducerIDSyntax is returned for a text that is not a ProducerID's.
var ErrProducerIDSyntax = errors.New("not a producer id: want 22 characters of base64")

// String returns the id's 22 characters in the tag.
func (p ProducerID) String() string { return producerCode.EncodeToString(p[:]) }

// ParseProducerID reads the text that String returns. Errors wrap ErrProducerIDSyntax.
func ParseProducerID(text string) (ProducerID, error) {
	if p, ok := parseProducer([]byte(text)); ok {
		return p, nil
	}
	return ProducerID{}, fmt.Errorf("%w: %q", ErrProducerIDSyntax, text)
}

func parseProducer(text []byte) (p ProducerID, ok bool) {
	if len(text) != producerLength {
		return p, false
	}
	n, err := producerCode.Decode(p[:], text)
	return p, err == nil && n == len(p) // less where line ends were skipped
}

// Unit is the identity of one or more records of one lane that a producer sends, and resends, as
// the same bytes. The first copy in a stream counts, and a Filter drops the others.
type Unit struct {
	// Producer is the run that froze the unit.
	Producer ProducerID
	// Number counts the producer's units from 1, in the order in which it froze them.
	Number uint64
	// Low is the producer's lowest unsettled number at the time when the unit was frozen, so it is
	// at most Number. A unit is settled once it is acknowledged, or given up and reported.
	Low uint64
	// Unordered marks a run that keeps no order: each unit has its own lane.
	Unordered bool
}

// sound reports whether Number and Low can be a unit's.
func (u Unit) sound() bool {
	return u.Low >= 1 && u.Low <= u.Number && u.Number <= MaxNumber && u.Number-u.Low <= Window
}

// AppendTo appends the unit's tag to those of its first record.
func (u Unit) AppendTo(t Tags) Tags {
	var value [producerLength + 1 + 20 + 1 + 20 + 2]byte
	producerCode.Encode(value[:], u.Producer[:])
	b := append(value[:producerLength], '.')
	b = strconv.AppendUint(b, u.Number, 10)
	b = append(b, '.')
	b = strconv.AppendUint(b, u.Low, 10)
	if u.Unordered {
		b = append(b, ".u"...)
	}
	return appendTag(t, UnitTag, b)
}

// Unit returns the unit that begins with the record; ok is false if none does. The unit extends to
// the next record that begins one, or to the aggregate's end. Records before the first unit of an
// aggregate have no identity. Unit does not check Low against Number: Filter.Admit does, and
// returns Malformed.
func (r Record) Unit() (unit Unit, ok bool) {
	if len(r.Tags) == 0 {
		return Unit{}, false
	}
	found := 0
	for key, value := range r.Tags.All() {
		if string(key) == UnitTag {
			unit, ok = parseUnit(value)
			found++
		}
	}
	if found != 1 || !ok {
		return Unit{}, false
	}
	return unit, true
}

func parseUnit(value []byte) (u Unit, ok bool) {
	if len(value) < producerLength+1 || value[producerLength] != '.' {
		return Unit{}, false
	}
	if u.Producer, ok = parseProducer(value[:producerLength]); !ok {
		return Unit{}, false
	}
	rest := value[producerLength+1:]
	if u.Number, rest, ok = parseNumber(rest); !ok || len(rest) == 0 || rest[0] != '.' {
		return Unit{}, false
	}
	if u.Low, rest, ok = parseNumber(rest[1:]); !ok {
		return Unit{}, false
	}
	u.Unordered = string(rest) == ".u"
	return u, u.Unordered || len(rest) == 0
}

// parseNumber reads a decimal in [1, MaxNumber] without leading zeros, and returns the rest.
func parseNumber(b []byte) (n uint64, rest []byte, ok bool) {
	digits := 0
	for digits < len(b) && b[digits] >= '0' && b[digits] <= '9' {
		if digits == 19 {
			return 0, nil, false
		}
		n = n*10 + uint64(b[digits]-'0') // 19 digits are below 2^64
		digits++
	}
	if digits == 0 || b[0] == '0' || n > MaxNumber {
		return 0, nil, false
	}
	return n, b[digits:], true
}
