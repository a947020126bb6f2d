package rollup

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/runnel-stream/runnel"
)

// readOwn returns the value of an Own column.
func readOwn(in *input, record *runnel.Record) (Value, error) {
	value, err := in.of(record)
	if err == nil {
		value, err = checkOwn(value, in.Type)
	}
	if err != nil {
		return Value{}, &BadError{Reason: in.Name + ": " + err.Error(), Err: err}
	}
	return value, nil
}

// checkOwn returns the part of a value that its type has, or an error if no database takes it.
func checkOwn(value Value, t Type) (Value, error) {
	switch t {
	case Int:
		return Value{Int: value.Int}, nil
	case Double:
		if math.IsInf(value.Double, 0) || math.IsNaN(value.Double) {
			return Value{}, fmt.Errorf("the value %v is not a finite number", value.Double)
		}
		return Value{Double: positiveZero(value.Double)}, nil
	default:
		if !utf8.ValidString(value.Text) || strings.ContainsRune(value.Text, 0) {
			return Value{}, fmt.Errorf("the value %.60q is not UTF-8 without U+0000", value.Text)
		}
		return Value{Text: value.Text}, nil
	}
}
