package kinesis

// document reads a request's body from front to back: JSON or CBOR, known to be well-formed. Each
// method takes the next value; kind returns that value's kind.
type document interface {
	kind() valueKind
	skip()
	boolean() bool
	text() (string, error)
	// blob returns bytes; the caller owns them.
	blob() ([]byte, error)
	// number is ±Inf if it is too large for a float64.
	number() (float64, error)
	// time returns ms since 1970.
	time() (int64, error)
	list(element func() error) error
	// object calls member with each name. member reads the value; name is valid until then.
	object(member func(name []byte) error) error
}

// valueKind is the kind of a document's value.
type valueKind uint8

const (
	nullValue valueKind = iota
	booleanValue
	numberValue
	textValue
	bytesValue // of CBOR
	listValue
	objectValue
	otherValue // of CBOR: in no shape of the model
)

// javaClass is AWS's name of a scalar type in messages (kinesalite's test/helpers.js; that of bytes
// and of others is a guess).
func (k valueKind) javaClass() string {
	switch k {
	case booleanValue:
		return "java.lang.Boolean"
	case numberValue:
		return "com.amazon.coral.value.json.numbers.TruncatingBigNumber"
	case textValue:
		return "java.lang.String"
	case bytesValue:
		return "java.nio.HeapByteBuffer"
	default:
		return "java.lang.Object"
	}
}
