package kinesis

import (
	"encoding/base64"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
)

// decode reads a request. A SerializationException is the answer to a body that is no document, or
// has a member of another type than the model's. Its text is AWS's for JSON (kinesalite's
// test/helpers.js); AWS's text for CBOR is not known. Members that the model does not have are
// ignored, null means absent, and of a repeated member the last one counts.
func (p *plan) decode(format wire.Format, body []byte, in any) *wire.Error {
	var doc document
	var wrong error
	if format == wire.CBOR {
		doc, wrong = newCBORDocument(body)
	} else {
		doc, wrong = newJSONDocument(body)
	}
	if wrong == nil {
		wrong = p.fill(doc, reflect.ValueOf(in).Elem())
	}
	if wrong != nil {
		return &wire.Error{Code: codeSerialization, Message: wrong.Error()}
	}
	return nil
}

// memberError says in AWS's words why a value is wrong.
type memberError string

func (e memberError) Error() string { return string(e) }

// fill reads a value of the plan's shape into a variable of its type.
func (p *plan) fill(doc document, into reflect.Value) error {
	kind := doc.kind()
	if kind == nullValue {
		doc.skip()
		into.SetZero()
		return nil
	}
	if into.Kind() == reflect.Pointer {
		made := reflect.New(into.Type().Elem())
		into.Set(made)
		into = made.Elem()
	}
	switch p.kind {
	case structureShape:
		return p.fillStructure(doc, kind, into)
	case listShape:
		return p.fillList(doc, kind, into)
	case mapShape:
		return p.fillMap(doc, kind, into)
	default:
		return p.fillScalar(doc, kind, into)
	}
}

func (p *plan) fillStructure(doc document, kind valueKind, into reflect.Value) error {
	if kind != objectValue {
		return p.mismatch(kind)
	}
	return doc.object(func(name []byte) error {
		f := p.byName[string(name)]
		if f == nil {
			doc.skip()
			return nil
		}
		return f.plan.fill(doc, into.FieldByIndex(f.index))
	})
}

// kept limits a list or a map in memory, as a multiple of the model's maximum. Messages show these
// elements; the rest is read and dropped.
const kept = 10

func (p *plan) full(n int) bool { return p.max != nil && int64(n) >= kept**p.max }

func (p *plan) fillList(doc document, kind valueKind, into reflect.Value) error {
	if kind != listValue {
		return p.mismatch(kind)
	}
	into.Set(reflect.MakeSlice(into.Type(), 0, 8))
	return doc.list(func() error {
		n := into.Len()
		if p.full(n) {
			doc.skip()
			return nil
		}
		if n == into.Cap() {
			into.Grow(1)
		}
		into.SetLen(n + 1)
		return p.element.fill(doc, into.Index(n))
	})
}

func (p *plan) fillMap(doc document, kind valueKind, into reflect.Value) error {
	if kind != objectValue {
		return p.mismatch(kind)
	}
	into.Set(reflect.MakeMap(into.Type()))
	return doc.object(func(name []byte) error {
		key := reflect.ValueOf(string(name)).Convert(into.Type().Key())
		element := reflect.New(into.Type().Elem()).Elem()
		if err := p.element.fill(doc, element); err != nil {
			return err
		}
		if !p.full(into.Len()) {
			into.SetMapIndex(key, element)
		}
		return nil
	})
}

func (p *plan) fillScalar(doc document, kind valueKind, into reflect.Value) error {
	switch {
	case p.kind == textShape && kind == textValue:
		text, err := doc.text()
		into.SetString(text)
		return err
	case p.kind == blobShape && (kind == bytesValue || kind == textValue):
		data, err := doc.blob()
		into.SetBytes(data)
		return err
	case p.kind == integerShape && kind == numberValue:
		number, err := doc.number()
		into.SetInt(toInteger(number))
		return err
	case p.kind == timestampShape && kind == numberValue:
		ms, err := doc.time()
		into.SetInt(ms)
		return err
	case p.kind == booleanShape && kind == booleanValue:
		into.SetBool(doc.boolean())
		return nil
	case p.kind == booleanShape && kind == textValue:
		text, err := doc.text()
		if err == nil {
			var truth bool
			truth, err = truthOf(text)
			into.SetBool(truth)
		}
		return err
	}
	return p.mismatch(kind)
}

// toInteger rounds down, and limits the result to 32 bits: AWS's integers are Java's (kinesalite's
// validations/index.js, which follows tests against AWS).
func toInteger(number float64) int64 {
	return int64(math.Floor(min(max(number, math.MinInt32), math.MaxInt32)))
}

// truthOf reads the texts that AWS takes for booleans (kinesalite's validations/index.js).
func truthOf(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "1", "yes":
		return true, nil
	case "false", "0", "no":
		return false, nil
	}
	return false, memberError("'" + echo(strings.ToUpper(text)) +
		"' can not be converted to an Boolean")
}

// mismatch is AWS's error for a value of another kind than the shape's.
func (p *plan) mismatch(kind valueKind) error {
	switch {
	case kind == listValue:
		return memberError("Start of list found where not expected")
	case kind == objectValue:
		return memberError("Start of structure or map found where not expected.")
	case p.kind == listShape:
		return memberError("Expected list or null")
	case p.kind == mapShape:
		return memberError("Expected map or null")
	case p.kind == structureShape:
		return memberError("Expected null")
	}
	wanted := map[shapeKind]string{
		textShape:      "an String",
		integerShape:   "an Integer",
		booleanShape:   "an Boolean",
		blobShape:      "a Blob",
		timestampShape: "milliseconds since epoch",
	}[p.kind]
	return memberError("class " + kind.javaClass() + " can not be converted to " + wanted)
}

// base64Strict refuses base64 with unused bits set, as AWS does.
var base64Strict = base64.StdEncoding.Strict()

// notBase64 returns AWS's error for a text that is not base64 (kinesalite's test/helpers.js).
func notBase64(text string) error {
	why := "Invalid last non-pad Base64 character dectected"
	if len(text)%4 != 0 {
		why = "Base64 encoded length is expected a multiple of 4 bytes but found: " +
			strconv.Itoa(len(text))
	} else if c := wrongBase64(text); c != "" {
		why = "Invalid Base64 character: '" + c + "'"
	}
	return memberError("'" + echo(text) + "' can not be converted to a Blob: " + why)
}

// wrongBase64 returns the first misplaced character, also padding before other characters. "" if
// there is none.
func wrongBase64(text string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i, c := range text {
		padding := c == '=' && strings.Trim(text[i:], "=") == ""
		if !padding && !strings.ContainsRune(alphabet, c) {
			return string(c)
		}
	}
	return ""
}
