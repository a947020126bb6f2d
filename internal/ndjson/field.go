package ndjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Field is the path to a value inside a JSON document: the name of a member of the top object,
// or a JSON pointer (RFC 6901) if it begins with "/".
type Field struct {
	text string
	path []string
}

// Errors of Field.Of.
var (
	ErrNotJSON = errors.New("not JSON")
	ErrMissing = errors.New("no such field")
)

// ParseField reads a field's name or JSON pointer.
func ParseField(text string) (Field, error) {
	if text == "" {
		return Field{}, errors.New("the name of a field is empty")
	}
	if text[0] != '/' {
		return Field{text: text, path: []string{text}}, nil
	}
	f := Field{text: text}
	for _, part := range strings.Split(text[1:], "/") {
		for i := range len(part) {
			if part[i] == '~' && (i+1 == len(part) || part[i+1] != '0' && part[i+1] != '1') {
				return Field{}, fmt.Errorf("%q is not a JSON pointer: write ~0 for ~", text)
			}
		}
		f.path = append(f.path, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
	}
	return f, nil
}

// String returns the field as it was given.
func (f Field) String() string { return f.text }

// Of returns the field's value in a document: the text of a string, or compact JSON of any other
// value. The last of several members with one name counts. The error wraps ErrMissing if the field
// is absent or null, and ErrNotJSON if the document is not JSON.
func (f Field) Of(document []byte) (string, error) {
	r := readers.Get().(*reader)
	defer readers.Put(r)
	value, err := r.find(document, f.path)
	switch {
	case err != nil:
		return "", ErrNotJSON
	case value == nil || value.Kind() == 'n':
		return "", fmt.Errorf("%w %q", ErrMissing, f.text)
	case value.Kind() == '"':
		// The error is of an invalid byte or surrogate, in whose place the text has U+FFFD.
		text, _ := jsontext.AppendUnquote(nil, value)
		return string(text), nil
	}
	err = value.Compact()
	return string(value), err
}

// reader finds values in documents with jsontext, in half the time that encoding/json takes with
// maps (BenchmarkFieldOf).
type reader struct {
	document bytes.Buffer
	decoder  *jsontext.Decoder
}

// readers reuses readers: a decoder is larger than most documents.
var readers = sync.Pool{New: func() any {
	r := new(reader)
	r.decoder = jsontext.NewDecoder(&r.document)
	return r
}}

// find returns a copy of the value at a path; nil if there is none. It reads the whole document,
// which must be one JSON value.
func (r *reader) find(document []byte, path []string) (jsontext.Value, error) {
	r.document = *bytes.NewBuffer(document[:len(document):len(document)])
	r.decoder.Reset(&r.document,
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	defer func() { r.document = bytes.Buffer{} }()
	value, err := r.value(path)
	if err != nil {
		return nil, err
	}
	if _, err := r.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, ErrNotJSON // a second value
	}
	return value, nil
}

// value reads the next value, and returns its part at the path.
func (r *reader) value(path []string) (jsontext.Value, error) {
	if len(path) == 0 {
		value, err := r.decoder.ReadValue()
		return value.Clone(), err
	}
	switch r.decoder.PeekKind() {
	case '{':
		return r.member(path)
	case '[':
		return r.element(path)
	default:
		return nil, r.decoder.SkipValue()
	}
}

func (r *reader) member(path []string) (found jsontext.Value, err error) {
	if _, err := r.decoder.ReadToken(); err != nil {
		return nil, err
	}
	for r.decoder.PeekKind() != '}' {
		name, err := r.decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		if name.String() != path[0] {
			err = r.decoder.SkipValue()
		} else {
			found, err = r.value(path[1:])
		}
		if err != nil {
			return nil, err
		}
	}
	_, err = r.decoder.ReadToken()
	return found, err
}

func (r *reader) element(path []string) (found jsontext.Value, err error) {
	if _, err := r.decoder.ReadToken(); err != nil {
		return nil, err
	}
	for i := 0; r.decoder.PeekKind() != ']'; i++ {
		if strconv.Itoa(i) != path[0] {
			err = r.decoder.SkipValue()
		} else {
			found, err = r.value(path[1:])
		}
		if err != nil {
			return nil, err
		}
	}
	_, err = r.decoder.ReadToken()
	return found, err
}
