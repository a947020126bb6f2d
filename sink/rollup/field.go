package rollup

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ParseField reads a field as flags have it:
//
//	[NAME=]/JSON/POINTER[:int|:double|:text]
//
// Name and Type are empty where the text leaves them out. A pointer that itself ends in ":int",
// ":double" or ":text" needs a type behind it.
func ParseField(text string) (Field, error) {
	before, _, found := strings.Cut(text, "/")
	name, named := strings.CutSuffix(before, "=")
	if !found || named == (name == "") {
		return Field{}, fmt.Errorf("%q is not a field: want [NAME=]/pointer[:int|:double|:text], "+
			"such as /added:int", text)
	}
	f := Field{Name: name, Pointer: text[len(before):]}
	for _, t := range []Type{Int, Double, Text} {
		if pointer, ok := strings.CutSuffix(f.Pointer, ":"+string(t)); ok {
			f.Pointer, f.Type = pointer, t
			break
		}
	}
	if reason := pointerFault(f.Pointer); reason != "" {
		return Field{}, fmt.Errorf("the pointer %q %s", f.Pointer, reason)
	}
	if i := strings.LastIndexByte(f.Pointer, ':'); i >= 0 && f.Type == "" &&
		slices.Contains(otherTypes, strings.ToLower(f.Pointer[i+1:])) {
		return Field{}, fmt.Errorf("%q ends in a type that is none here: want :int, :double or "+
			":text; for a member of that name write %s:text, or another type", text, text)
	}
	return f, nil
}

// otherTypes are words for types that users may write.
var otherTypes = []string{
	"int", "integer", "bigint", "long", "double", "float", "real", "decimal", "numeric", "number",
	"text", "string", "varchar", "bool", "boolean", "timestamp", "time", "date", "json", "jsonb",
}

// ParseBucket reads a bucket's length: a duration as time.ParseDuration reads it, or a number of
// days such as "1d". Definition.Validate checks its range.
func ParseBucket(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 63)
		if err == nil && n <= math.MaxInt64/uint64(day) {
			return time.Duration(n) * day, nil
		}
	} else if bucket, err := time.ParseDuration(text); err == nil {
		return bucket, nil
	}
	return 0, fmt.Errorf("%q is not the length of a bucket: want such as 30s, 5m, 1h or 1d", text)
}

// pointerFault returns the fault of a JSON pointer, as the end of a sentence; "" if it has none.
func pointerFault(pointer string) string {
	switch {
	case pointer == "" || pointer[0] != '/':
		return "is not a JSON pointer: want it to begin with /, such as /user/name"
	case !utf8.ValidString(pointer):
		return "is not UTF-8: write the member's name as the JSON has it"
	}
	for i := range len(pointer) {
		if pointer[i] == '~' && !strings.HasPrefix(pointer[i:], "~0") &&
			!strings.HasPrefix(pointer[i:], "~1") {
			return "is not a JSON pointer: write ~0 for ~ and ~1 for / inside a name"
		}
	}
	return ""
}

// pointerPath returns the names on a pointer.
func pointerPath(pointer string) []string {
	names := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range names {
		names[i] = strings.ReplaceAll(strings.ReplaceAll(names[i], "~1", "/"), "~0", "~")
	}
	return names
}

// nameOf returns the default name for a pointer, which may be a bad one.
func nameOf(pointer string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		default:
			return '_'
		}
	}, strings.Join(pointerPath(pointer), "_"))
}
