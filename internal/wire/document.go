package wire

import (
	"errors"
	"strings"
)

// Document reads a request's body from front to back: JSON or CBOR, known to be well-formed. Each
// method takes the next value; Kind returns that value's kind. The errors have AWS's texts.
type Document interface {
	Kind() ValueKind
	Skip()
	Boolean() bool
	Text() (string, error)
	// Blob returns bytes; the caller owns them.
	Blob() ([]byte, error)
	// Number is ±Inf if it is too large for a float64.
	Number() (float64, error)
	// Time returns ms since 1970.
	Time() (int64, error)
	List(element func() error) error
	// Object calls member with each name. member reads the value; name is valid until then.
	Object(member func(name []byte) error) error
}

// NewDocument returns a reader of a body in JSON or CBOR. It refuses a body that is not
// well-formed, or too deep.
func NewDocument(format Format, body []byte) (Document, error) {
	if format == CBOR {
		return newCBORDocument(body)
	}
	return newJSONDocument(body)
}

// ValueKind is the kind of a document's value.
type ValueKind uint8

// The kinds.
const (
	NullValue ValueKind = iota
	BooleanValue
	NumberValue
	TextValue
	BytesValue // of CBOR
	ListValue
	ObjectValue
	OtherValue // of CBOR: in no shape of the model
)

// javaClass is AWS's name of a scalar type in messages (kinesalite's test/helpers.js; the
// names for bytes and others are guesses).
func (k ValueKind) javaClass() string {
	switch k {
	case BooleanValue:
		return "java.lang.Boolean"
	case NumberValue:
		return "com.amazon.coral.value.json.numbers.TruncatingBigNumber"
	case TextValue:
		return "java.lang.String"
	case BytesValue:
		return "java.nio.HeapByteBuffer"
	default:
		return "java.lang.Object"
	}
}

// Shape is the kind of value that the API's model wants.
type Shape uint8

// The shapes.
const (
	TextShape Shape = iota + 1
	IntegerShape
	BooleanShape
	TimestampShape
	BlobShape
	ListShape
	MapShape
	StructureShape
)

// Mismatch is AWS's error for a value of another kind than the shape's (kinesalite's
// test/helpers.js).
func (s Shape) Mismatch(found ValueKind) error {
	switch {
	case found == ListValue:
		return errors.New("Start of list found where not expected")
	case found == ObjectValue:
		return errors.New("Start of structure or map found where not expected.")
	case s == ListShape:
		return errors.New("Expected list or null")
	case s == MapShape:
		return errors.New("Expected map or null")
	case s == StructureShape:
		return errors.New("Expected null")
	}
	wanted := map[Shape]string{
		TextShape:      "an String",
		IntegerShape:   "an Integer",
		BooleanShape:   "an Boolean",
		BlobShape:      "a Blob",
		TimestampShape: "milliseconds since epoch",
	}[s]
	return errors.New("class " + found.javaClass() + " can not be converted to " + wanted)
}

// MaxEcho bounds the length of a wrong value in a message, in bytes.
const MaxEcho = 2048

// Echo returns the part of a wrong value that a message repeats.
func Echo(value string) string {
	if len(value) > MaxEcho {
		return strings.ToValidUTF8(value[:MaxEcho], "") + "…"
	}
	return value
}
