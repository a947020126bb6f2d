package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"

	"github.com/runnel-stream/runnel/internal/wire"
)

// The operations that put.
const (
	putRecord  = "PutRecord"
	putRecords = "PutRecords"
)

// target is how a request names its stream: by StreamName, StreamARN or both.
type target struct {
	StreamName, StreamARN *string
}

// entry is a record of a request. A member that is not there is nil.
type entry struct {
	Data            []byte
	PartitionKey    *string
	ExplicitHashKey *string
}

// size is what counts against the limits: data and partition key.
func (e *entry) size() int { return len(e.Data) + len(*e.PartitionKey) }

// request is a PutRecord, which has one record, or a PutRecords.
type request struct {
	target
	Records []entry
}

// single is PutRecord's input. SequenceNumberForOrdering is taken and not looked at: the numbers
// of a key always grow here.
type single struct {
	target
	entry
}

// maxKept is how many records of a request are read at most. What is more is refused anyway, and
// must not take memory that its bytes do not.
const maxKept = 10 * maxRecords

// decode reads a call's body. Members that the API does not have are ignored, and null is
// absent. The request keeps nothing of the body. A body that is no such document is a
// SerializationException.
func decode(call *wire.Call) (*request, *wire.Error) {
	var r *request
	var err error
	switch {
	case call.Format == wire.JSON && !utf8.Valid(call.Body):
		err = errors.New("it is not UTF-8") // and would be read as another key than was sent
	case call.Operation == putRecord:
		var one single
		if call.Format == wire.CBOR {
			err = cborMode.Unmarshal(call.Body, &one)
		} else {
			err = json.Unmarshal(call.Body, &one)
		}
		r = &request{one.target, []entry{one.entry}}
	case call.Format == wire.CBOR:
		r = new(request)
		err = cborMode.Unmarshal(call.Body, r)
	default:
		r, err = decodeJSON(call.Body)
	}
	if err != nil {
		return nil, wire.Serialization(wire.Kinesis,
			"The body is not what "+call.Operation+" takes: "+err.Error())
	}
	return r, nil
}

var cborMode = newCBORMode()

func newCBORMode() cbor.DecMode {
	mode, err := cbor.DecOptions{MaxArrayElements: maxKept}.DecMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return mode
}

// decodeJSON reads a PutRecords, record by record, so that what is beyond maxKept is not kept.
func decodeJSON(body []byte) (*request, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if token, err := decoder.Token(); err != nil {
		return nil, whole(err)
	} else if token != json.Delim('{') {
		return nil, errors.New("it is not an object")
	}
	r := new(request)
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, whole(err)
		}
		switch name {
		case "StreamName":
			err = decoder.Decode(&r.StreamName)
		case "StreamARN":
			err = decoder.Decode(&r.StreamARN)
		case "Records":
			r.Records, err = decodeEntries(decoder)
		default:
			var ignored json.RawMessage
			err = decoder.Decode(&ignored)
		}
		if err != nil {
			return nil, fmt.Errorf("%v: %w", name, whole(err))
		}
	}
	if _, err := decoder.Token(); err != nil { // the closing brace
		return nil, whole(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return r, nil
}

func decodeEntries(decoder *json.Decoder) ([]entry, error) {
	token, err := decoder.Token()
	if err != nil || token == nil {
		return nil, err
	}
	if token != json.Delim('[') {
		return nil, errors.New("it is not a list")
	}
	entries := make([]entry, 0, 8)
	for decoder.More() {
		if len(entries) > maxKept {
			return nil, fmt.Errorf("it has more than %d elements, and may have %d", maxKept,
				maxRecords)
		}
		var e entry
		if err := decoder.Decode(&e); err != nil {
			return nil, fmt.Errorf("element %d: %w", len(entries)+1, err)
		}
		entries = append(entries, e)
	}
	_, err = decoder.Token() // the closing bracket
	return entries, err
}

// whole says of a document's early end what it is.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
