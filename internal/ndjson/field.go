package ndjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
	if !json.Valid(document) {
		return "", ErrNotJSON
	}
	value := document
	for _, name := range f.path {
		value = bytes.TrimLeft(value, jsonSpace)
		switch {
		case len(value) > 0 && value[0] == '{':
			value = memberOf(value, name)
		case len(value) > 0 && value[0] == '[':
			value = element(value, name)
		default:
			value = nil
		}
	}
	value = bytes.Trim(value, jsonSpace)
	switch {
	case len(value) == 0 || value[0] == 'n':
		return "", fmt.Errorf("%w %q", ErrMissing, f.text)
	case value[0] == '"':
		return unquote(value), nil
	case value[0] == '{' || value[0] == '[':
		var compact bytes.Buffer
		err := json.Compact(&compact, value)
		return compact.String(), err
	}
	return string(value), nil
}

const jsonSpace = " \t\r\n"

// memberOf returns the value of an object's last member of that name; nil if there is none.
func memberOf(doc []byte, name string) (value []byte) {
	rest := doc[1:]
	for {
		rest = bytes.TrimLeft(rest, jsonSpace+",")
		if len(rest) == 0 || rest[0] != '"' {
			return value
		}
		end := skip(rest)
		key := rest[:end]
		rest = bytes.TrimLeft(rest[end:], jsonSpace+":")
		end = skip(rest)
		if unquote(key) == name {
			value = rest[:end]
		}
		rest = rest[end:]
	}
}

// element returns an array's element by its index; nil if there is none.
func element(doc []byte, index string) []byte {
	n, err := strconv.Atoi(index)
	if err != nil || strconv.Itoa(n) != index || n < 0 {
		return nil
	}
	rest := doc[1:]
	for {
		rest = bytes.TrimLeft(rest, jsonSpace+",")
		end := skip(rest)
		if end == 0 || n == 0 {
			return rest[:end]
		}
		rest, n = rest[end:], n-1
	}
}

// skip returns the length of the first value of doc, which is valid JSON; 0 at an array's end.
func skip(doc []byte) int {
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			for i++; i < len(doc) && doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return min(i+1, len(doc))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(doc)
}

func unquote(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 && len(quoted) >= 2 {
		return strings.ToValidUTF8(string(quoted[1:len(quoted)-1]), "\ufffd")
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return ""
	}
	return text
}
