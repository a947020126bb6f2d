package wire

import (
	"bytes"
	"unicode/utf8"

	"github.com/segmentio/asm/base64"
)

// scanner reads the plain form of a JSON put from the front of rest, in a tenth of the time of a
// Document (BenchmarkDecode in server/internal/kinesis). A method returns false for anything that
// is not plain (an escape, a member twice or unknown, a wrong type, too many records, not JSON at
// all), and rest is invalid then. Decode starts over in that case, and finds the words of the
// error. Both readers give the same result for the bodies that the scanner takes: see FuzzScan.
type scanner struct {
	rest []byte
	data []byte // the destination of decoded blobs; large enough for all of the document's
}

func newScanner(body []byte) *scanner { return &scanner{rest: body} }

// token reads one given byte, with the white space before it.
func (s *scanner) token(want byte) bool {
	s.space()
	if len(s.rest) == 0 || s.rest[0] != want {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *scanner) space() {
	for len(s.rest) > 0 {
		switch s.rest[0] {
		case ' ', '\t', '\r', '\n':
			s.rest = s.rest[1:]
		default:
			return
		}
	}
}

// end reports whether nothing but white space is left.
func (s *scanner) end() bool {
	s.space()
	return len(s.rest) == 0
}

// quoted takes a string, up to the first quotation mark. If that one is escaped, the result ends
// with a backslash, which neither text nor blob takes.
func (s *scanner) quoted() ([]byte, bool) {
	if !s.token('"') {
		return nil, false
	}
	end := bytes.IndexByte(s.rest, '"')
	if end < 0 {
		return nil, false
	}
	text := s.rest[:end]
	s.rest = s.rest[end+1:]
	return text, true
}

// text reads a string without escapes.
func (s *scanner) text() (*string, bool) {
	quoted, ok := s.quoted()
	if !ok || !utf8.Valid(quoted) {
		return nil, false
	}
	for _, c := range quoted {
		if c < 0x20 || c == '\\' {
			return nil, false
		}
	}
	text := string(quoted)
	return &text, true
}

// base64Scanned is base64Strict, several times as fast.
var base64Scanned = base64.StdEncoding.Strict()

// blob reads a string of base64 and returns its bytes; the caller owns them.
func (s *scanner) blob() ([]byte, bool) {
	quoted, ok := s.quoted()
	if !ok {
		return nil, false
	}
	if s.data == nil { // all blobs of the rest together are no larger
		s.data = make([]byte, 0, base64.StdEncoding.DecodedLen(len(quoted)+len(s.rest)))
	}
	at := len(s.data)
	room := s.data[at : at+base64.StdEncoding.DecodedLen(len(quoted))]
	n, err := base64Scanned.Decode(room, quoted)
	// The decoder skips line breaks, which a JSON string cannot hold: the numbers differ then.
	if err != nil || len(quoted)%4 != 0 || n != len(quoted)/4*3-padding(quoted) {
		return nil, false
	}
	s.data = s.data[:at+n]
	return s.data[at : at+n : at+n], true
}

func padding(encoded []byte) int {
	return len(encoded) - len(bytes.TrimRight(encoded, "="))
}

// object reads an object and calls member for each name; member reads the value.
func (s *scanner) object(member func(name []byte) bool) bool {
	if !s.token('{') {
		return false
	}
	if s.token('}') {
		return true
	}
	for {
		name, ok := s.quoted()
		if !ok || !s.token(':') || !member(name) {
			return false
		}
		if s.token('}') {
			return true
		}
		if !s.token(',') {
			return false
		}
	}
}

// array reads an array and calls element for each value; element reads it.
func (s *scanner) array(element func() bool) bool {
	if !s.token('[') {
		return false
	}
	if s.token(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if s.token(']') {
			return true
		}
		if !s.token(',') {
			return false
		}
	}
}

// once reads a string into a member that is still unset.
func (s *scanner) once(member **string) (ok bool) {
	if *member != nil {
		return false
	}
	*member, ok = s.text()
	return ok
}

// scan reports whether it has read the body, which is plain then.
func (in *PutRecordsInput) scan(body []byte) bool {
	s := newScanner(body)
	return s.object(func(name []byte) bool {
		switch string(name) {
		case "StreamName":
			return s.once(&in.StreamName)
		case "StreamARN":
			return s.once(&in.StreamARN)
		case "Records":
			if in.Records != nil {
				return false
			}
			in.Records = make([]PutEntry, 0, 8)
			return s.array(func() bool {
				if len(in.Records) > MaxPutRecords {
					return false
				}
				in.Records = append(in.Records, PutEntry{})
				entry := &in.Records[len(in.Records)-1]
				return s.object(func(name []byte) bool { return entry.scan(s, name) })
			})
		default:
			return false
		}
	}) && s.end()
}

// scan reports whether it has read the body, which is plain then.
func (in *PutRecordInput) scan(body []byte) bool {
	s := newScanner(body)
	return s.object(func(name []byte) bool {
		switch string(name) {
		case "StreamName":
			return s.once(&in.StreamName)
		case "StreamARN":
			return s.once(&in.StreamARN)
		case "SequenceNumberForOrdering":
			return s.once(&in.SequenceNumberForOrdering)
		default:
			return in.PutEntry.scan(s, name)
		}
	}) && s.end()
}

// scan reads the value of a member.
func (e *PutEntry) scan(s *scanner, name []byte) (ok bool) {
	switch string(name) {
	case "Data":
		if e.Data != nil {
			return false
		}
		e.Data, ok = s.blob()
		return ok
	case "PartitionKey":
		return s.once(&e.PartitionKey)
	case "ExplicitHashKey":
		return s.once(&e.ExplicitHashKey)
	default:
		return false
	}
}
