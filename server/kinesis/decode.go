package kinesis

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/runnel-stream/runnel/internal/awswire"
)

// decode reads a request. A body that is no JSON, or has a member of another type than the
// model says, is a SerializationException; unknown members are ignored, null is absent.
func decode(body []byte, in any) *awswire.Error {
	err := json.Unmarshal(body, in)
	if err == nil {
		return nil
	}
	message := "the request's body is not a JSON document: " + err.Error()
	var wrongType *json.UnmarshalTypeError
	var wrongMember *memberError
	var wrongBase64 base64.CorruptInputError
	switch {
	case errors.As(err, &wrongMember):
		message = wrongMember.Error()
	case errors.As(err, &wrongType):
		message = typeMessage(wrongType.Value, wrongType.Type)
	case errors.As(err, &wrongBase64):
		message = "the value can not be converted to a Blob: " + err.Error()
	}
	return serialization(message)
}

// serialization returns the one error whose text AWS puts into Message with a capital.
func serialization(message string) *awswire.Error {
	return &awswire.Error{Code: codeSerialization, Message: message}
}

// memberError is returned by the members' own decoders.
type memberError struct{ message string }

func (e *memberError) Error() string { return e.message }

// typeMessage words the wrong type of a member as AWS does. value is what stands in the
// document, in encoding/json's terms.
func typeMessage(value string, want reflect.Type) string {
	name := "Structure"
	switch want.Kind() {
	case reflect.String:
		name = "String"
	case reflect.Int64:
		name = "Integer"
	case reflect.Bool:
		name = "Boolean"
	case reflect.Map:
		name = "Map"
	case reflect.Slice:
		name = "List"
		if want.Elem().Kind() == reflect.Uint8 {
			name = "Blob"
		}
	}
	value, _, _ = strings.Cut(value, " ") // "number 12" is a number
	switch {
	case value == "array":
		return "Start of list found where not expected"
	case value == "object":
		return "Start of structure or map found where not expected."
	case name == "List":
		return "Expected list or null"
	case name == "Map":
		return "Expected map or null"
	case name == "Structure":
		return "Expected null"
	}
	class := map[string]string{
		"string": "java.lang.String",
		"number": "java.math.BigDecimal",
		"bool":   "java.lang.Boolean",
	}[value]
	article := "an"
	if name == "Blob" {
		article = "a"
	}
	return "class " + class + " can not be converted to " + article + " " + name
}

// jsonKind names the kind of a JSON value as encoding/json's errors do.
func jsonKind(data []byte) string {
	switch data[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	default:
		return "number"
	}
}

// integer is a whole number. A fraction is cut off, as AWS does.
type integer int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *integer) UnmarshalJSON(data []byte) error {
	value, err := jsonNumber(data, reflect.TypeFor[int64]())
	if err == nil {
		*n = integer(value)
	}
	return err
}

// timestamp is a point in time, in ms since 1970; on the wire in seconds, with a fraction.
type timestamp int64

// UnmarshalJSON implements json.Unmarshaler.
func (t *timestamp) UnmarshalJSON(data []byte) error {
	value, err := jsonNumber(data, reflect.TypeFor[int64]())
	if err == nil {
		*t = timestamp(math.Round(value * 1000))
	}
	return err
}

// MarshalJSON implements json.Marshaler: seconds with three decimals, never an exponent.
func (t timestamp) MarshalJSON() ([]byte, error) { return appendSeconds(nil, int64(t)), nil }

// jsonNumber reads a number of less than 10^15 in size: exact as a float64, and in ms, too.
func jsonNumber(data []byte, want reflect.Type) (float64, error) {
	if kind := jsonKind(data); kind != "number" {
		return 0, &memberError{typeMessage(kind, want)}
	}
	value, err := strconv.ParseFloat(string(data), 64)
	if err != nil || math.Abs(value) >= 1e15 {
		return 0, &memberError{string(data) + " can not be converted to an Integer"}
	}
	return value, nil
}
