package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
)

// jsonDocument reads a JSON text. newJSONDocument has checked it, so this type only looks for the
// ends of values.
type jsonDocument struct {
	rest []byte
}

func newJSONDocument(body []byte) (Document, error) {
	// encoding/json would read U+FFFD in the place of an invalid byte: another key than was sent.
	if !utf8.Valid(body) {
		return nil, errors.New("the request's body is not UTF-8")
	}
	if !json.Valid(body) {
		var document json.RawMessage
		err := json.Unmarshal(body, &document) // for its words
		return nil, errors.New("the request's body is not a JSON document: " + err.Error())
	}
	return &jsonDocument{body}, nil
}

// peek returns the first byte of the next value.
func (d *jsonDocument) peek() byte {
	for i, c := range d.rest {
		if c > ' ' {
			d.rest = d.rest[i:]
			break
		}
	}
	return d.rest[0]
}

// Kind implements Document.
func (d *jsonDocument) Kind() ValueKind {
	switch d.peek() {
	case 'n':
		return NullValue
	case 't', 'f':
		return BooleanValue
	case '"':
		return TextValue
	case '[':
		return ListValue
	case '{':
		return ObjectValue
	default:
		return NumberValue
	}
}

// Skip implements Document.
func (d *jsonDocument) Skip() {
	for depth := 0; ; {
		switch d.peek() {
		case '[', '{':
			depth++
			d.rest = d.rest[1:]
		case ']', '}':
			depth--
			d.rest = d.rest[1:]
		case ',', ':':
			d.rest = d.rest[1:]
		case '"':
			d.quoted()
		default:
			d.plain()
		}
		if depth == 0 {
			return
		}
	}
}

// quoted reads a string, with its quotation marks.
func (d *jsonDocument) quoted() []byte {
	d.peek()
	end := 1
	for d.rest[end] != '"' {
		if d.rest[end] == '\\' {
			end++
		}
		end++
	}
	text := d.rest[:end+1]
	d.rest = d.rest[end+1:]
	return text
}

// plain reads a number, true, false or null.
func (d *jsonDocument) plain() []byte {
	d.peek()
	for i, c := range d.rest {
		if c <= ' ' || c == ',' || c == ']' || c == '}' {
			text := d.rest[:i]
			d.rest = d.rest[i:]
			return text
		}
	}
	text := d.rest
	d.rest = nil
	return text
}

// unquote decodes a string as encoding/json does.
func unquote(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil { // cannot be: the string is valid
		return nil
	}
	return []byte(text)
}

// Boolean implements Document.
func (d *jsonDocument) Boolean() bool { return d.plain()[0] == 't' }

// Text implements Document.
func (d *jsonDocument) Text() (string, error) { return string(unquote(d.quoted())), nil }

// Blob implements Document: base64.
func (d *jsonDocument) Blob() ([]byte, error) { return fromBase64(unquote(d.quoted())) }

// Number implements Document.
func (d *jsonDocument) Number() (float64, error) {
	number, _ := strconv.ParseFloat(string(d.plain()), 64) // ±Inf if it is out of range
	return number, nil
}

// Time implements Document: seconds, with a fraction.
func (d *jsonDocument) Time() (int64, error) {
	seconds, err := d.Number()
	if err != nil {
		return 0, err
	}
	return toMillis(seconds)
}

// toMillis converts seconds to ms. It refuses 1e12 s and more; below that a float64 resolves each
// ms.
func toMillis(seconds float64) (int64, error) {
	if !(math.Abs(seconds) < 1e12) {
		return 0, errors.New(strconv.FormatFloat(seconds, 'g', -1, 64) +
			" can not be converted to milliseconds since epoch")
	}
	return int64(math.Round(seconds * 1000)), nil
}

// List implements Document.
func (d *jsonDocument) List(element func() error) error {
	return d.elements(']', element)
}

// Object implements Document.
func (d *jsonDocument) Object(member func(name []byte) error) error {
	return d.elements('}', func() error {
		name := unquote(d.quoted())
		d.peek()
		d.rest = d.rest[1:] // the colon
		return member(name)
	})
}

// elements takes the values between brackets and commas.
func (d *jsonDocument) elements(closing byte, take func() error) error {
	d.peek()
	d.rest = d.rest[1:]
	for d.peek() != closing {
		if d.rest[0] == ',' {
			d.rest = d.rest[1:]
		}
		if err := take(); err != nil {
			return err
		}
	}
	d.rest = d.rest[1:]
	return nil
}
