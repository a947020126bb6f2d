package rollup

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/runnel-stream/runnel"
)

// reference finds the JSON of a pointer's value with encoding/json; nil if there is none.
func reference(document []byte, path []string) json.RawMessage {
	if len(path) == 0 {
		return document
	}
	switch bytes.TrimLeft(document, " \t\r\n")[0] {
	case '{':
		var members map[string]json.RawMessage
		if json.Unmarshal(document, &members) == nil && members[path[0]] != nil {
			return reference(members[path[0]], path[1:])
		}
	case '[':
		var elements []json.RawMessage
		i, err := strconv.Atoi(path[0])
		if json.Unmarshal(document, &elements) == nil && err == nil && strconv.Itoa(i) == path[0] &&
			i >= 0 && i < len(elements) {
			return reference(elements[i], path[1:])
		}
	}
	return nil
}

var escapes = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)

// halfPair reports whether a JSON string has a surrogate without its other half.
func halfPair(quoted []byte) bool {
	text := escapes.ReplaceAllStringFunc(string(quoted), func(escape string) string {
		if escape[1] != 'u' {
			return "."
		}
		return escape
	})
	for i := 0; i < len(text); i++ {
		unit := func(from int) rune {
			if from+6 > len(text) || text[from:from+2] != `\u` {
				return -1
			}
			r, _ := strconv.ParseUint(text[from+2:from+6], 16, 16)
			return rune(r)
		}
		if first := unit(i); utf16.IsSurrogate(first) {
			if utf16.DecodeRune(first, unit(i+6)) == utf8.RuneError {
				return true
			}
			i += 11
		}
	}
	return false
}

// referenceText returns the text of a value and whether it can be kept.
func referenceText(value json.RawMessage) (string, bool) {
	if value[0] != '"' {
		var compact bytes.Buffer
		err := json.Compact(&compact, value)
		return compact.String(), err == nil && value[0] != 'n'
	}
	var text string
	err := json.Unmarshal(value, &text)
	return text, err == nil && !strings.Contains(text, "\x00") && !halfPair(value)
}

// largeExponent matches numbers that package big takes too long for.
var largeExponent = regexp.MustCompile(`[eE][+-]?0*[0-9]{4,}$`)

// referenceRat returns the number that a value is; nil if it is none.
func referenceRat(value json.RawMessage) *big.Rat {
	if c := value[0]; c != '-' && (c < '0' || c > '9') {
		return nil
	}
	number, _ := new(big.Rat).SetString(string(value))
	return number
}

// referenceTime returns the time of a number.
func referenceTime(number *big.Rat) (time.Time, bool) {
	size, scale := new(big.Rat).Abs(number), int64(1)
	for _, limit := range []int64{1e11, 1e14, 1e17} {
		if size.Cmp(new(big.Rat).SetInt64(limit)) >= 0 {
			scale *= 1000
		}
	}
	nanos := new(big.Rat).Mul(number, big.NewRat(1e9, scale))
	whole := new(big.Int).Quo(nanos.Num(), nanos.Denom())
	seconds, rest := new(big.Int).QuoRem(whole, big.NewInt(1e9), new(big.Int))
	if !seconds.IsInt64() || seconds.CmpAbs(big.NewInt(1e13)) > 0 {
		return time.Time{}, false
	}
	at := time.Unix(seconds.Int64(), rest.Int64()).UTC()
	return at, at.Year() >= 1 && at.Year() <= 9999
}

// FuzzExtract compares the verdicts and values of all types with those of encoding/json, for one
// pointer and for the pointer of the value around it.
func FuzzExtract(f *testing.F) {
	for _, data := range []string{
		`{"a":{"b":1.5},"c":[1,"x"]}`, `{"a":{"b":1},"a":{"b":"\ud83d\ude00\n"}}`, `[1,[2]]`, ` {} x`,
		`{"a" : {"b" : [ "\u0000", true ] } }`, `{"a":{"b":9223372036854775807.0}}`, `{"a":{"b":null}}`,
		`{"a":{"b":1700000000123.5}}`, `{"a":{"b":1e-9}}`, `{"a":{"b":"\ud800"}}`, "{\"\xff\":1}", `5`, ``,
		`{"a":{"b":"2026-01-02T03:04:05.5+02:00"}}`, `{"\u0061":{"\u0062":-0.0e5}}`, `{"a":1,}`, `{"a":[1,]}`,
		`{"a":{"b":123456789012345678901234567890e-20}}`, `{"a":{"b":"\ud83d\ud83d\ude00"}}`,
	} {
		f.Add([]byte(data), "/a/b")
		f.Add([]byte(data), "/1/0")
	}
	f.Fuzz(compareDocument)
}

// TestExtract does the same with random documents that have few different names.
func TestExtract(t *testing.T) {
	pointers := rapid.SampledFrom([]string{"/a", "/a/b", "/0", "/a/0", "/b/a/0", "/0/1", "/b/b", "/é/a"})
	rapid.Check(t, func(r *rapid.T) {
		compareDocument(t, []byte(drawJSON(r, 4)), pointers.Draw(r, "pointer"))
		if t.Failed() {
			r.Fatal("see above")
		}
	})
}

// drawJSON draws a JSON text of the depth, now and then one with a fault.
func drawJSON(t *rapid.T, depth int) string {
	kind := rapid.IntRange(depth/2, 9).Draw(t, "kind") // the whole is an object or an array
	scalar := rapid.SampledFrom([]string{
		`1`, `-0.0`, `1.5e3`, `1e400`, `9223372036854775807`, `9223372036854775808`, `1700000000123`,
		`null`, `true`, `""`, `"x\n"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\u0000"`, `"é"`,
		`"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05,5Z"`, "\"\xff\"", `01`, ``,
	})
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space") }
	var parts []string
	for range rapid.IntRange(0, 4).Draw(t, "length") {
		if depth == 0 || kind < 2 {
			break
		}
		part := space() + drawJSON(t, depth-1) + space()
		if kind < 7 {
			part = space() + rapid.SampledFrom([]string{
				`"a"`, `"a"`, `"\u0061"`, `"b"`, `"b"`, `"0"`, `"é"`, `"\u00e9"`, `"\ud800"`,
			}).Draw(t, "name") + space() + ":" + part
		}
		parts = append(parts, part)
	}
	switch {
	case depth == 0 || kind < 2:
		return scalar.Draw(t, "scalar")
	case kind < 7:
		return "{" + strings.Join(parts, ",") + "}"
	default:
		return "[" + strings.Join(parts, ",") + "]"
	}
}

func compareDocument(t *testing.T, data []byte, pointer string) {
	if pointerFault(pointer) != "" {
		return
	}
	valid := json.Valid(data) && utf8.Valid(data)
	outer := pointer[:max(strings.LastIndexByte(pointer, '/'), 0)]
	for _, p := range []string{pointer, outer} {
		var value json.RawMessage
		if valid && p != "" {
			value = reference(data, pointerPath(p))
		}
		if p == "" || value != nil && largeExponent.Match(value) {
			continue
		}
		compareFields(t, data, []string{pointer, outer, p}, value)
		compareTime(t, data, p, value)
	}
}

// compareFields compares the value of the last pointer, in every type; the others are read with it.
func compareFields(t *testing.T, data []byte, pointers []string, value json.RawMessage) {
	last := pointers[len(pointers)-1]
	for _, of := range []Type{Text, Int, Double} {
		d := Definition{Bucket: time.Hour, Columns: []Column{{Op: Last, Field: Field{Name: "v", Pointer: last, Type: of}}}}
		x := newExtractor(d)
		var slots []int // pointers that are not needed must not change the outcome
		x.scanner, slots = newScanner(slicesWithout(pointers, ""))
		x.columns[0].slot = slots[len(slots)-1]
		err := x.read(&runnel.Record{Data: data, ArrivalTime: time.UnixMilli(1)})
		want, ok := Value{}, value != nil
		if ok {
			switch of {
			case Text:
				want.Text, ok = referenceText(value)
			case Int:
				number := referenceRat(value)
				if ok = number != nil && number.IsInt() && number.Num().IsInt64(); ok {
					want.Int = number.Num().Int64()
				}
			case Double:
				ok = value[0] != 'n' && json.Unmarshal(value, &want.Double) == nil
			}
		}
		got := x.row.Values[0]
		got.Text = string(x.texts[0])
		if (err == nil) != ok || ok && got != want {
			t.Errorf("%q as %s: %v, %v; want %v, %v", value, of, got, err, want, ok)
		}
	}
}

func slicesWithout(list []string, text string) (rest []string) {
	for _, s := range list {
		if s != text {
			rest = append(rest, s)
		}
	}
	return rest
}

func compareTime(t *testing.T, data []byte, pointer string, value json.RawMessage) {
	d := Definition{Keys: []Field{{Pointer: "/unused"}}, Time: pointer}
	x := newExtractor(d)
	x.keys = nil
	err := x.read(&runnel.Record{Data: data, ArrivalTime: time.UnixMilli(1)})
	want, ok := time.Time{}, false
	if value != nil {
		if number := referenceRat(value); number != nil {
			want, ok = referenceTime(number)
		} else if text, good := referenceText(value); good && value[0] == '"' {
			want, ok = referenceRFC3339(text)
		}
	}
	if (err == nil) != ok || ok && !x.row.Order.Time.Equal(want) {
		t.Errorf("%q as a time: %v, %v; want %v, %v", value, x.row.Order.Time, err, want, ok)
	}
}

var rfc3339 = regexp.MustCompile(
	`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func referenceRFC3339(text string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, text)
	at = at.UTC()
	return at, err == nil && rfc3339.MatchString(text) && at.Year() >= 1 && at.Year() <= 9999
}
