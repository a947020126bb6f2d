package rollup

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// text returns the text of a JSON value.
func (x *extractor) text(in *input, value []byte) ([]byte, error) {
	from := len(x.unquoted)
	if value[0] != '"' {
		if x.unquoted = appendCompact(x.unquoted, value); len(x.unquoted)-from == len(value) {
			return value, nil
		}
		return x.unquoted[from:], nil
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1], nil
	}
	var err error
	if x.unquoted, err = jsontext.AppendUnquote(x.unquoted, value); err != nil {
		return nil, bad("%s has half of a surrogate pair, which is no character", in.Pointer)
	}
	text := x.unquoted[from:len(x.unquoted):len(x.unquoted)]
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, bad("%s has the character U+0000, which no database takes", in.Pointer)
	}
	return text, nil
}

// appendCompact appends valid JSON without the white space outside of strings.
func appendCompact(dst, value []byte) []byte {
	quoted := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			dst = append(dst, c)
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			continue
		}
		dst = append(dst, value[i])
	}
	return dst
}

// kindOf names the kind of a JSON value.
func kindOf(value []byte) string {
	switch value[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

func article(noun string) string {
	if noun == "array" || noun == "object" {
		return "an"
	}
	return "a"
}
