package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// field is a path into JSON documents.
type field []string

// parseField reads the name of a top-level field, or a JSON pointer (RFC 6901), which begins
// with a slash.
func parseField(text string) (field, error) {
	if !strings.HasPrefix(text, "/") {
		return field{text}, nil
	}
	var path field
	for _, part := range strings.Split(text[1:], "/") {
		for i := range len(part) {
			if part[i] == '~' && (i+1 == len(part) || part[i+1] != '0' && part[i+1] != '1') {
				return nil, fmt.Errorf("%q is not a JSON pointer: ~ stands for ~0 only", text)
			}
		}
		path = append(path, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
	}
	return path, nil
}

// name returns the path as people know it.
func (f field) name() string { return strings.Join(f, "/") }

// text returns the field's value: a string's text, or anything else as compact JSON. The
// document must be valid JSON. A field that is missing, null or empty is not ok.
func (f field) text(doc []byte) (string, bool) {
	for _, name := range f {
		doc = bytes.TrimLeft(doc, jsonSpace)
		switch {
		case len(doc) > 0 && doc[0] == '{':
			doc = memberOf(doc, name)
		case len(doc) > 0 && doc[0] == '[':
			doc = element(doc, name)
		default:
			return "", false
		}
	}
	doc = bytes.Trim(doc, jsonSpace)
	switch {
	case len(doc) == 0 || doc[0] == 'n':
		return "", false
	case doc[0] == '"':
		text := unquote(doc)
		return text, text != ""
	case doc[0] == '{' || doc[0] == '[':
		var compact bytes.Buffer
		if err := json.Compact(&compact, doc); err != nil {
			return "", false
		}
		return compact.String(), true
	}
	return string(doc), true
}

const jsonSpace = " \t\r\n"

// memberOf returns the value of an object's last member of that name, nil if there is none.
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

// element returns an array's element by its index, nil if there is none.
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

// skip returns the length of the value that valid JSON begins with; 0 at an array's end.
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
