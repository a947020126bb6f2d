package ndjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Field is the way to a value inside a JSON document: the name of a member of the top object,
// or a JSON pointer (RFC 6901) if it begins with "/".
type Field struct {
	text string
	path []string
}

// Errors of Field.Of.
var (
	ErrNotJSON = errors.New("not a JSON object")
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
	path := strings.Split(text[1:], "/")
	for i, step := range path {
		path[i] = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
	}
	return Field{text: text, path: path}, nil
}

// String returns the field as it was given.
func (f Field) String() string { return f.text }

// Of returns the field's value in a document: a string's content, anything else as compact
// JSON text.
func (f Field) Of(document []byte) (string, error) {
	if !json.Valid(document) {
		return "", ErrNotJSON
	}
	value := json.RawMessage(document)
	for depth, step := range f.path {
		next, err := member(value, step)
		if err != nil {
			if depth == 0 && errors.Is(err, ErrNotJSON) {
				return "", err
			}
			return "", fmt.Errorf("%w %q", ErrMissing, f.text)
		}
		value = next
	}
	if value[0] == '"' {
		var text string
		err := json.Unmarshal(value, &text)
		return text, err
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, value)
	return compact.String(), err
}

func member(value json.RawMessage, step string) (json.RawMessage, error) {
	switch trimmed := bytes.TrimLeft(value, " \t\r\n"); trimmed[0] {
	case '{':
		var object map[string]json.RawMessage
		if err := json.Unmarshal(trimmed, &object); err != nil {
			return nil, err
		}
		if next, ok := object[step]; ok {
			return next, nil
		}
		return nil, ErrMissing
	case '[':
		var array []json.RawMessage
		if err := json.Unmarshal(trimmed, &array); err != nil {
			return nil, err
		}
		index, err := strconv.Atoi(step)
		if err != nil || index < 0 || index >= len(array) || step != strconv.Itoa(index) {
			return nil, ErrMissing
		}
		return array[index], nil
	default:
		return nil, ErrNotJSON
	}
}
