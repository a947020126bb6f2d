package kinesis

import (
	"errors"
	"math"
	"reflect"
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
)

// decode reads a request. A SerializationException is the answer to a body that is no document, or
// has a member of another type than the model's. Its text is AWS's for JSON (kinesalite's
// test/helpers.js); AWS's text for CBOR is not known. Members that the model does not have are
// ignored, null means absent, and of a repeated member the last one counts.
func (p *plan) decode(format wire.Format, body []byte, in any) *wire.Error {
	doc, wrong := wire.NewDocument(format, body)
	if wrong == nil {
		wrong = p.fill(doc, reflect.ValueOf(in).Elem())
	}
	if wrong != nil {
		return &wire.Error{Code: codeSerialization, Message: wrong.Error()}
	}
	return nil
}

// fill reads a value of the plan's shape into a variable of its type.
func (p *plan) fill(doc wire.Document, into reflect.Value) error {
	kind := doc.Kind()
	if kind == wire.NullValue {
		doc.Skip()
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

func (p *plan) fillStructure(doc wire.Document, kind wire.ValueKind, into reflect.Value) error {
	if kind != wire.ObjectValue {
		return p.kind.Mismatch(kind)
	}
	return doc.Object(func(name []byte) error {
		f := p.byName[string(name)]
		if f == nil {
			doc.Skip()
			return nil
		}
		return f.plan.fill(doc, into.FieldByIndex(f.index))
	})
}

// full reports whether a list or a map has as many elements as are kept in memory: see
// wire.KeptFactor.
func (p *plan) full(n int) bool { return p.max != nil && int64(n) >= wire.KeptFactor**p.max }

func (p *plan) fillList(doc wire.Document, kind wire.ValueKind, into reflect.Value) error {
	if kind != wire.ListValue {
		return p.kind.Mismatch(kind)
	}
	into.Set(reflect.MakeSlice(into.Type(), 0, 8))
	return doc.List(func() error {
		n := into.Len()
		if p.full(n) {
			doc.Skip()
			return nil
		}
		if n == into.Cap() {
			into.Grow(1)
		}
		into.SetLen(n + 1)
		return p.element.fill(doc, into.Index(n))
	})
}

func (p *plan) fillMap(doc wire.Document, kind wire.ValueKind, into reflect.Value) error {
	if kind != wire.ObjectValue {
		return p.kind.Mismatch(kind)
	}
	into.Set(reflect.MakeMap(into.Type()))
	return doc.Object(func(name []byte) error {
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

func (p *plan) fillScalar(doc wire.Document, kind wire.ValueKind, into reflect.Value) error {
	switch {
	case p.kind == textShape && kind == wire.TextValue:
		text, err := doc.Text()
		into.SetString(text)
		return err
	case p.kind == blobShape && (kind == wire.BytesValue || kind == wire.TextValue):
		data, err := doc.Blob()
		into.SetBytes(data)
		return err
	case p.kind == integerShape && kind == wire.NumberValue:
		number, err := doc.Number()
		into.SetInt(toInteger(number))
		return err
	case p.kind == timestampShape && kind == wire.NumberValue:
		ms, err := doc.Time()
		into.SetInt(ms)
		return err
	case p.kind == booleanShape && kind == wire.BooleanValue:
		into.SetBool(doc.Boolean())
		return nil
	case p.kind == booleanShape && kind == wire.TextValue:
		text, err := doc.Text()
		if err == nil {
			var truth bool
			truth, err = truthOf(text)
			into.SetBool(truth)
		}
		return err
	}
	return p.kind.Mismatch(kind)
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
	return false, errors.New("'" + wire.Echo(strings.ToUpper(text)) +
		"' can not be converted to an Boolean")
}
