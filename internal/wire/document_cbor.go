package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"

	"github.com/runnel-stream/runnel/internal/cboritem"
)

// cborDocument reads a CBOR item (RFC 8949). cbor.Wellformed has checked the item and bounded its
// depth and its counts, so this type only looks for the ends of items.
//
// Clients (the SDKs for Java) send maps and lists of definite and indefinite length, blobs as byte
// strings, and timestamps as tag 1 with whole milliseconds.
type cborDocument struct {
	rest []byte
	data []byte // the destination of blobs; large enough for all of the document's
}

func newCBORDocument(body []byte) (Document, error) {
	if err := cbor.Wellformed(body); err != nil {
		return nil, errors.New("the request's body is not a CBOR document: " + err.Error())
	}
	return &cborDocument{rest: body}, nil
}

// major returns the type of the next item. It skips tags: the kind of the tagged item decides.
func (d *cborDocument) major() (major, info byte) {
	for d.rest[0]>>5 == cboritem.Tag {
		d.head()
	}
	return d.rest[0] >> 5, d.rest[0] & 31
}

// head reads an item's head and returns its argument: a value or a length.
func (d *cborDocument) head() (info byte, argument uint64) {
	info = d.rest[0] & 31
	d.rest = d.rest[1:]
	switch {
	case info < 24:
		return info, uint64(info)
	case info == cboritem.Indefinite:
		return info, 0
	}
	size := 1 << (info - 24)
	var wide [8]byte
	copy(wide[8-size:], d.rest[:size])
	d.rest = d.rest[size:]
	return info, binary.BigEndian.Uint64(wide[:])
}

// Kind implements Document.
func (d *cborDocument) Kind() ValueKind {
	major, info := d.major()
	switch major {
	case cboritem.Unsigned, cboritem.Negative:
		return NumberValue
	case cboritem.Bytes:
		return BytesValue
	case cboritem.Text:
		return TextValue
	case cboritem.Array:
		return ListValue
	case cboritem.Map:
		return ObjectValue
	}
	switch info {
	case cboritem.False, cboritem.True:
		return BooleanValue
	case cboritem.Null, cboritem.Undefined:
		return NullValue
	case cboritem.Half, cboritem.Single, cboritem.Double:
		return NumberValue
	default:
		return OtherValue
	}
}

// Skip implements Document.
func (d *cborDocument) Skip() {
	switch major, _ := d.major(); major {
	case cboritem.Bytes, cboritem.Text:
		d.string(func([]byte) {})
	case cboritem.Array:
		_ = d.items(func() error { d.Skip(); return nil })
	case cboritem.Map:
		_ = d.items(func() error { d.Skip(); d.Skip(); return nil })
	default:
		d.head()
	}
}

// items calls take for each element of an array or each pair of a map.
func (d *cborDocument) items(take func() error) error {
	info, left := d.head()
	for {
		if info == cboritem.Indefinite && d.rest[0] == cboritem.Break {
			d.rest = d.rest[1:]
			return nil
		}
		if info != cboritem.Indefinite {
			if left == 0 {
				return nil
			}
			left--
		}
		if err := take(); err != nil {
			return err
		}
	}
}

// string reads a byte or text string, in one or more chunks.
func (d *cborDocument) string(piece func([]byte)) {
	take := func() error {
		_, n := d.head()
		piece(d.rest[:n])
		d.rest = d.rest[n:]
		return nil
	}
	if d.rest[0]&31 == cboritem.Indefinite {
		_ = d.items(take)
	} else {
		_ = take()
	}
}

// bytes reads a string, usually of one chunk. The result is valid as long as the body.
func (d *cborDocument) bytes() []byte {
	var all []byte
	pieces := 0
	d.string(func(piece []byte) {
		if pieces++; pieces == 1 {
			all = piece[:len(piece):len(piece)]
		} else {
			all = append(all, piece...)
		}
	})
	return all
}

// Boolean implements Document.
func (d *cborDocument) Boolean() bool {
	info, _ := d.head()
	return info == cboritem.True
}

// Text implements Document.
func (d *cborDocument) Text() (string, error) {
	text := d.bytes()
	if !utf8.Valid(text) {
		return "", errors.New("the request's body has a text that is not UTF-8")
	}
	return string(text), nil
}

// Blob implements Document: a byte string, or base64 as in JSON (a guess: no SDK sends it).
func (d *cborDocument) Blob() ([]byte, error) {
	if major, _ := d.major(); major == cboritem.Text {
		return fromBase64(d.bytes())
	}
	if d.data == nil { // all strings of the rest together are no larger
		d.data = make([]byte, 0, len(d.rest))
	}
	from := len(d.data)
	d.string(func(piece []byte) { d.data = append(d.data, piece...) })
	return d.data[from:len(d.data):len(d.data)], nil
}

// Number implements Document.
func (d *cborDocument) Number() (float64, error) {
	major, _ := d.major()
	info, argument := d.head()
	switch major {
	case cboritem.Unsigned:
		return float64(argument), nil
	case cboritem.Negative:
		return -1 - float64(argument), nil
	}
	number := cboritem.Float(info, argument)
	if math.IsNaN(number) {
		return 0, errors.New("NaN can not be converted to an Integer")
	}
	return number, nil
}

// Time implements Document. A whole number is milliseconds, as all SDKs send it; a fraction is
// seconds, as RFC 8949 has it (a guess: no SDK sends it).
func (d *cborDocument) Time() (int64, error) {
	major, _ := d.major()
	number, err := d.Number()
	if err == nil && major != cboritem.Simple {
		number /= 1000
	}
	if err != nil {
		return 0, err
	}
	return toMillis(number)
}

// List implements Document.
func (d *cborDocument) List(element func() error) error {
	d.major()
	return d.items(element)
}

// Object implements Document.
func (d *cborDocument) Object(member func(name []byte) error) error {
	d.major()
	return d.items(func() error {
		if d.Kind() != TextValue {
			return errors.New("the request's body has a map with a key that is not a text")
		}
		return member(d.bytes())
	})
}
