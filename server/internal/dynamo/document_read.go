package dynamo

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// documentReader parses documents with jsontext, which implements JSON's grammar.
type documentReader struct {
	*document
	body    bytes.Buffer
	decoder *jsontext.Decoder // of the body
}

// documentReaders reuses readers: a decoder is larger than most bodies.
var documentReaders = sync.Pool{New: func() any {
	r := &documentReader{decoder: jsontext.NewDecoder(new(bytes.Buffer))}
	r.reset()
	return r
}}

var (
	errSecondValue = errors.New("more than one value")
	errManyValues  = errors.New("more values than an item can have")
)

// maxNodes is the greatest number of values in a document. An item of 400 KB has room for 400,000,
// as a list of the least elements. A body of 15 MiB has room for five million: their nodes alone
// would take ten times its memory.
const maxNodes = 1 << 20

// readDocument parses a body, which must be one JSON value.
func readDocument(body []byte) (*document, error) {
	d := &document{text: body[:len(body):len(body)]} // an append must copy it
	d.nodes = d.room[:0]
	if long := 64 << 10; len(body) > long {
		most := 1 + bytes.Count(body, []byte(",")) + bytes.Count(body, []byte("{")) +
			bytes.Count(body, []byte("["))
		d.nodes = make([]node, 0, min(most, maxNodes)) // growth would take several times that
	}
	r := documentReaders.Get().(*documentReader)
	r.document, r.body = d, *bytes.NewBuffer(body)
	err := r.whole()
	r.reset()
	documentReaders.Put(r)
	return d, err
}

// reset prepares the reader for another document. The options relax jsontext where it is stricter
// than encoding/json.
func (r *documentReader) reset() {
	r.document, r.body = nil, bytes.Buffer{}
	r.decoder.Reset(&r.body, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// whole reads one value up to the end.
func (r *documentReader) whole() error {
	if err := r.value(span{}); err != nil {
		return err
	}
	if _, err := r.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return errSecondValue
	}
	return nil
}

// value reads a value with all its inner values. jsontext limits the depth to 10,000 levels.
func (r *documentReader) value(name span) error {
	at := r.behind()
	if at == maxNodes {
		return errManyValues
	}
	r.nodes = append(r.nodes, node{name: name})
	kind := r.decoder.PeekKind()
	var err error
	switch kind {
	case '{':
		err = r.object(at)
	case '[':
		err = r.list(at)
	default:
		r.nodes[at].raw, err = r.scalar()
	}
	r.nodes[at].behind = r.behind()
	if kind == '{' && err == nil {
		r.drop(at)
	}
	return err
}

// behind is the index of the next node, and offset the decoder's place in the text.
func (r *documentReader) behind() int32 { return int32(len(r.nodes)) }
func (r *documentReader) offset() int32 { return int32(r.decoder.InputOffset()) }

func (r *documentReader) object(at int32) error {
	err := r.begin(at)
	for err == nil && r.decoder.PeekKind() != '}' {
		var name span
		if name, err = r.name(); err == nil {
			r.nodes[at].inner++
			err = r.value(name)
		}
	}
	return r.end(at, err)
}

func (r *documentReader) list(at int32) error {
	err := r.begin(at)
	for err == nil && r.decoder.PeekKind() != ']' {
		r.nodes[at].inner++
		err = r.value(span{})
	}
	return r.end(at, err)
}

// begin reads the opening bracket of an object or a list.
func (r *documentReader) begin(at int32) error {
	_, err := r.decoder.ReadToken()
	r.nodes[at].raw.from = r.offset() - 1
	return err
}

// end reads the closing bracket unless there was an error before it.
func (r *documentReader) end(at int32, err error) error {
	if err == nil {
		_, err = r.decoder.ReadToken()
	}
	r.nodes[at].raw.to = r.offset()
	return err
}

// scalar reads a value that is neither an object nor a list.
func (r *documentReader) scalar() (span, error) {
	raw, err := r.decoder.ReadValue()
	to := r.offset()
	return span{to - int32(len(raw)), to}, err
}

// name reads a member's name; the span excludes the quotation marks.
func (r *documentReader) name() (span, error) {
	raw, err := r.scalar()
	if err != nil {
		return span{}, err
	}
	quoted := r.at(raw)
	if isPlain(quoted) {
		return span{raw.from + 1, raw.to - 1}, nil
	}
	from := len(r.text)
	r.text = appendUnquoted(r.text, quoted)
	return span{int32(from), int32(len(r.text))}, nil
}

// isPlain reports whether a JSON string has no escapes and needs no replacement of bytes.
func isPlain(quoted []byte) bool {
	return bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted)
}

// appendUnquoted appends the meaning of a JSON string.
func appendUnquoted(dst, quoted []byte) []byte {
	dst, _ = jsontext.AppendUnquote(dst, quoted) // the error only reports a U+FFFD
	return dst
}
