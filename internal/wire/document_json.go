package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonDocument reads a JSON text with jsontext. newJSONDocument has checked all of it, so the
// methods ignore errors of the decoder: a wrong text is refused before a wrong value in it.
type jsonDocument struct {
	decoder *jsontext.Decoder
}

func newJSONDocument(body []byte) (Document, error) {
	// encoding/json would read U+FFFD in the place of an invalid byte: another key than was sent.
	if !utf8.Valid(body) {
		return nil, errors.New("the request's body is not UTF-8")
	}
	// As encoding/json does: a name may occur twice, and \ud800 need not be part of a pair.
	lenient := []jsontext.Options{
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	}
	if !jsontext.Value(body).IsValid(lenient...) {
		var document json.RawMessage
		err := json.Unmarshal(body, &document) // for its words
		if err == nil {
			err = errors.New("it is nested too deep")
		}
		return nil, errors.New("the request's body is not a JSON document: " + err.Error())
	}
	text := bytes.NewBuffer(body[:len(body):len(body)])
	return &jsonDocument{jsontext.NewDecoder(text, lenient...)}, nil
}

// Kind implements Document.
func (d *jsonDocument) Kind() ValueKind {
	switch d.decoder.PeekKind() {
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
func (d *jsonDocument) Skip() { _ = d.decoder.SkipValue() }

// Boolean implements Document.
func (d *jsonDocument) Boolean() bool {
	value, _ := d.decoder.ReadToken()
	return value.Bool()
}

// Text implements Document.
func (d *jsonDocument) Text() (string, error) { return string(d.text()), nil }

// text reads a string. The result is valid until the next value is read.
func (d *jsonDocument) text() []byte {
	quoted, _ := d.decoder.ReadValue()
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	text, _ := jsontext.AppendUnquote(nil, quoted) // U+FFFD in the place of half a surrogate pair
	return text
}

// Blob implements Document: base64.
func (d *jsonDocument) Blob() ([]byte, error) { return fromBase64(d.text()) }

// Number implements Document.
func (d *jsonDocument) Number() (float64, error) {
	value, _ := d.decoder.ReadValue()
	number, _ := strconv.ParseFloat(string(value), 64) // ±Inf if it is out of range
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
func (d *jsonDocument) List(element func() error) error { return d.elements(']', element) }

// Object implements Document.
func (d *jsonDocument) Object(member func(name []byte) error) error {
	return d.elements('}', func() error { return member(d.text()) })
}

// elements reads the values up to the closing bracket.
func (d *jsonDocument) elements(closing jsontext.Kind, read func() error) error {
	_, _ = d.decoder.ReadToken()
	for d.decoder.PeekKind() != closing {
		if err := read(); err != nil {
			return err
		}
	}
	_, _ = d.decoder.ReadToken()
	return nil
}
