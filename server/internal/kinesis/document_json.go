package kinesis

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// jsonDocument reads a JSON text. json.Valid has checked it, so this type only looks for the ends
// of values.
type jsonDocument struct {
	rest []byte
}

func newJSONDocument(body []byte) (*jsonDocument, error) {
	if !json.Valid(body) {
		var document json.RawMessage
		err := json.Unmarshal(body, &document) // for its words
		return nil, memberError("the request's body is not a JSON document: " + err.Error())
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

// kind implements document.
func (d *jsonDocument) kind() valueKind {
	switch d.peek() {
	case 'n':
		return nullValue
	case 't', 'f':
		return booleanValue
	case '"':
		return textValue
	case '[':
		return listValue
	case '{':
		return objectValue
	default:
		return numberValue
	}
}

// skip implements document.
func (d *jsonDocument) skip() {
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

// unquote decodes a string as encoding/json does: invalid UTF-8 becomes U+FFFD.
func unquote(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil { // cannot be: the string is valid
		return nil
	}
	return []byte(text)
}

// boolean implements document.
func (d *jsonDocument) boolean() bool { return d.plain()[0] == 't' }

// text implements document.
func (d *jsonDocument) text() (string, error) { return string(unquote(d.quoted())), nil }

// blob implements document: base64.
func (d *jsonDocument) blob() ([]byte, error) { return fromBase64(unquote(d.quoted())) }

// fromBase64 decodes base64. It refuses line breaks, which the decoder would skip.
func fromBase64(text []byte) ([]byte, error) {
	data, err := base64Strict.AppendDecode(make([]byte, 0, len(text)/4*3), text)
	if err != nil || bytes.ContainsAny(text, "\r\n") {
		return nil, notBase64(string(text))
	}
	return data, nil
}

// number implements document.
func (d *jsonDocument) number() (float64, error) {
	number, _ := strconv.ParseFloat(string(d.plain()), 64) // ±Inf if it is out of range
	return number, nil
}

// time implements document: seconds, with a fraction.
func (d *jsonDocument) time() (int64, error) {
	seconds, err := d.number()
	if err != nil {
		return 0, err
	}
	return toMillis(seconds)
}

// toMillis converts seconds to ms. It refuses 1e12 s and more; below that a float64 resolves each
// ms.
func toMillis(seconds float64) (int64, error) {
	if !(math.Abs(seconds) < 1e12) {
		return 0, memberError(strconv.FormatFloat(seconds, 'g', -1, 64) +
			" can not be converted to milliseconds since epoch")
	}
	return int64(math.Round(seconds * 1000)), nil
}

// list implements document.
func (d *jsonDocument) list(element func() error) error {
	return d.elements(']', element)
}

// object implements document.
func (d *jsonDocument) object(member func(name []byte) error) error {
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
