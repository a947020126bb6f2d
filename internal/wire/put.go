package wire

// MaxPutRecords is the most records of a PutRecords (AWS, "PutRecords").
const MaxPutRecords = 500

// KeptFactor bounds a decoded list in memory, as a multiple of its maximum in the API's model. The
// messages about a list that is too long show its elements. Further elements are read and dropped.
const KeptFactor = 10

// StreamRef names the stream of a request: by StreamName, StreamARN or both. A member that the
// request does not have is nil.
type StreamRef struct {
	StreamName *string
	StreamARN  *string
}

// PutEntry is a record of a put. A member that the request does not have is nil.
type PutEntry struct {
	Data            []byte
	PartitionKey    *string
	ExplicitHashKey *string
}

// Size returns the bytes that count against the limits: data and partition key, which must be
// there.
func (e *PutEntry) Size() int { return len(e.Data) + len(*e.PartitionKey) }

// PutRecordsInput is the input of PutRecords.
type PutRecordsInput struct {
	StreamRef
	Records []PutEntry
}

// PutRecordInput is the input of PutRecord.
type PutRecordInput struct {
	StreamRef
	PutEntry
	SequenceNumberForOrdering *string
}

// Decode reads a request, as the server and the proxy take it. The input keeps nothing of the body.
// A SerializationException is the answer to a body that is no document, or has a member of another
// type than the model's. Names of members are case-sensitive. A member that the model does not have
// is ignored, null means absent, and of a repeated member the last one counts. The members' values
// are not checked.
func (in *PutRecordsInput) Decode(format Format, body []byte) *Error {
	*in = PutRecordsInput{}
	if format == JSON && in.scan(body) {
		return nil
	}
	*in = PutRecordsInput{}
	return decodePut(format, body, in)
}

// Decode reads a request: see PutRecordsInput.Decode.
func (in *PutRecordInput) Decode(format Format, body []byte) *Error {
	*in = PutRecordInput{}
	if format == JSON && in.scan(body) {
		return nil
	}
	*in = PutRecordInput{}
	return decodePut(format, body, in)
}

func decodePut(format Format, body []byte, into structure) *Error {
	doc, err := NewDocument(format, body)
	if err == nil {
		err = readStructure(doc, into)
	}
	if err != nil {
		return Serialization(Kinesis, err.Error())
	}
	return nil
}

// member implements structure.
func (in *PutRecordsInput) member(doc Document, name []byte) error {
	if string(name) == "Records" {
		return in.readRecords(doc)
	}
	return in.StreamRef.member(doc, name)
}

func (in *PutRecordsInput) readRecords(doc Document) error {
	in.Records = nil
	switch kind := doc.Kind(); kind {
	case ListValue:
	case NullValue:
		doc.Skip()
		return nil
	default:
		return ListShape.Mismatch(kind)
	}
	in.Records = make([]PutEntry, 0, 8)
	return doc.List(func() error {
		if len(in.Records) >= KeptFactor*MaxPutRecords {
			doc.Skip()
			return nil
		}
		in.Records = append(in.Records, PutEntry{})
		return readStructure(doc, &in.Records[len(in.Records)-1])
	})
}

// member implements structure.
func (in *PutRecordInput) member(doc Document, name []byte) error {
	switch string(name) {
	case "StreamName", "StreamARN":
		return in.StreamRef.member(doc, name)
	case "SequenceNumberForOrdering":
		return readText(doc, &in.SequenceNumberForOrdering)
	default:
		return in.PutEntry.member(doc, name)
	}
}

// member implements structure.
func (r *StreamRef) member(doc Document, name []byte) error {
	switch string(name) {
	case "StreamName":
		return readText(doc, &r.StreamName)
	case "StreamARN":
		return readText(doc, &r.StreamARN)
	default:
		doc.Skip()
		return nil
	}
}

// member implements structure.
func (e *PutEntry) member(doc Document, name []byte) error {
	switch string(name) {
	case "Data":
		return readBlob(doc, &e.Data)
	case "PartitionKey":
		return readText(doc, &e.PartitionKey)
	case "ExplicitHashKey":
		return readText(doc, &e.ExplicitHashKey)
	default:
		doc.Skip()
		return nil
	}
}

// structure is a value with members.
type structure interface {
	// member reads the value of a member.
	member(doc Document, name []byte) error
}

// readStructure reads an object, or null, which has no members.
func readStructure(doc Document, into structure) error {
	switch kind := doc.Kind(); kind {
	case ObjectValue:
		return doc.Object(func(name []byte) error { return into.member(doc, name) })
	case NullValue:
		doc.Skip()
		return nil
	default:
		return StructureShape.Mismatch(kind)
	}
}

func readText(doc Document, into **string) error {
	*into = nil
	switch kind := doc.Kind(); kind {
	case TextValue:
		text, err := doc.Text()
		*into = &text
		return err
	case NullValue:
		doc.Skip()
		return nil
	default:
		return TextShape.Mismatch(kind)
	}
}

// readBlob reads bytes, or base64 in a text.
func readBlob(doc Document, into *[]byte) (err error) {
	*into = nil
	switch kind := doc.Kind(); kind {
	case BytesValue, TextValue:
		*into, err = doc.Blob()
		return err
	case NullValue:
		doc.Skip()
		return nil
	default:
		return BlobShape.Mismatch(kind)
	}
}
