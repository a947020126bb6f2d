package archive

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/runnel-stream/runnel"
)

// ErrRecordSyntax is returned for a line that AppendRecord has not written.
var ErrRecordSyntax = errors.New("not a record of an archive")

// AppendRecord appends the record as one line of JSON, without a line break:
//
//	{"partitionKey":"…","explicitHashKey":"…","sequenceNumber":"…","subSequenceNumber":0,
//	"arrivalTime":"2026-01-02T03:04:05.678Z","shardId":"…","data":…}
//
// explicitHashKey and arrivalTime are left out if they are not known. The data is written verbatim
// if it is valid JSON and valid UTF-8, has no line break, no white space around it, and is not
// nested deeper than JSON decoders read. Otherwise dataBase64 (RFC 4648, padded) replaces it. In
// the same way partitionKeyBase64 replaces a partition key that is not valid UTF-8, which only an
// aggregated record can have. So ParseRecord returns exactly the bytes that were put, except for
// the arrival's fraction of a millisecond.
func AppendRecord(dst []byte, record *runnel.Record) []byte {
	if utf8.ValidString(record.PartitionKey) {
		dst = append(dst, `{"partitionKey":`...)
		dst = appendString(dst, record.PartitionKey)
	} else {
		dst = append(dst, `{"partitionKeyBase64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(record.PartitionKey))
		dst = append(dst, '"')
	}
	if record.ExplicitHashKey != "" {
		dst = append(dst, `,"explicitHashKey":`...)
		dst = appendString(dst, record.ExplicitHashKey)
	}
	dst = append(dst, `,"sequenceNumber":`...)
	dst = appendString(dst, string(record.Position.Sequence))
	dst = append(dst, `,"subSequenceNumber":`...)
	dst = strconv.AppendInt(dst, record.Position.Sub, 10)
	if hasTime(record.ArrivalTime) {
		dst = append(dst, `,"arrivalTime":"`...)
		dst = record.ArrivalTime.UTC().AppendFormat(dst, timeLayout)
		dst = append(dst, '"')
	}
	dst = append(dst, `,"shardId":`...)
	dst = appendString(dst, string(record.ShardID))
	if verbatim(record.Data) {
		dst = append(dst, `,"data":`...)
		dst = append(dst, record.Data...)
		return append(dst, '}')
	}
	dst = append(dst, `,"dataBase64":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, record.Data)
	return append(dst, '"', '}')
}

// maxNesting is the largest depth of arrays and objects in verbatim data: encoding/json reads
// 10,000 levels, and the record's own object is one of them.
const maxNesting = 9_999

// verbatim reports whether the data can be written into a line unchanged and read back from it.
func verbatim(data []byte) bool {
	if len(data) == 0 || isSpace(data[0]) || isSpace(data[len(data)-1]) {
		return false
	}
	return bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 &&
		utf8.Valid(data) && json.Valid(data) && !nestedTooDeep(data)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// nestedTooDeep expects valid JSON.
func nestedTooDeep(data []byte) bool {
	if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) <= maxNesting {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			if depth++; depth > maxNesting {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

// appendString appends valid UTF-8 as a JSON string, with only the necessary escapes.
func appendString(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[from:i]...)
		if from = i + 1; c >= ' ' {
			dst = append(dst, '\\', c)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, text[from:]...), '"')
}

type envelope struct {
	PartitionKey       *string               `json:"partitionKey"`
	PartitionKeyBase64 *[]byte               `json:"partitionKeyBase64"`
	ExplicitHashKey    string                `json:"explicitHashKey"`
	SequenceNumber     runnel.SequenceNumber `json:"sequenceNumber"`
	SubSequenceNumber  int64                 `json:"subSequenceNumber"`
	ArrivalTime        string                `json:"arrivalTime"`
	ShardID            runnel.ShardID        `json:"shardId"`
	Data               json.RawMessage       `json:"data"`
	DataBase64         *[]byte               `json:"dataBase64"`
}

// ParseRecord reads a line that AppendRecord wrote; it skips fields that it does not know. The
// record shares no memory with the line. For any other line it returns an error that wraps
// ErrRecordSyntax.
func ParseRecord(line []byte) (runnel.Record, error) {
	if record, ok := parseFast(line); ok {
		return record, nil
	}
	return parseSlow(line)
}

func parseSlow(line []byte) (runnel.Record, error) {
	var read envelope
	if err := json.Unmarshal(line, &read); err != nil {
		return runnel.Record{}, fmt.Errorf("%w: %w", ErrRecordSyntax, err)
	}
	record := runnel.Record{
		ExplicitHashKey: read.ExplicitHashKey,
		ShardID:         read.ShardID,
		Data:            read.Data,
		Position: runnel.Position{
			Sequence: read.SequenceNumber, Sub: read.SubSequenceNumber,
		},
	}
	switch {
	case (read.PartitionKey == nil) == (read.PartitionKeyBase64 == nil):
		return runnel.Record{}, fmt.Errorf("%w: it has no partition key, or two", ErrRecordSyntax)
	case (read.Data == nil) == (read.DataBase64 == nil):
		return runnel.Record{}, fmt.Errorf("%w: it has no data, or two", ErrRecordSyntax)
	case !record.Position.IsRecord():
		return runnel.Record{}, fmt.Errorf("%w: no record has the position %q/%d", ErrRecordSyntax,
			read.SequenceNumber, read.SubSequenceNumber)
	}
	if read.PartitionKey != nil {
		record.PartitionKey = *read.PartitionKey
	} else {
		record.PartitionKey = string(*read.PartitionKeyBase64)
	}
	if read.DataBase64 != nil {
		record.Data = *read.DataBase64
	}
	var err error
	if record.ArrivalTime, err = readTime(read.ArrivalTime); err != nil {
		return runnel.Record{}, fmt.Errorf("%w: %w", ErrRecordSyntax, err)
	}
	return record, nil
}
