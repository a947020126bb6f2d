package proxy

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
)

// The API's limits (AWS, "PutRecords" and "UpdateMaxRecordSize").
const (
	maxBytes       = 10 << 20 // of a request: data and partition keys
	maxRecordBytes = 10 << 20 // of a record, at the highest limit that a stream can have
	maxData        = 10 << 20 // bytes of a record's data
	maxKey         = 256      // characters of a partition key
	maxName        = 128      // characters of a stream's name
	maxARN         = 2048     // characters of an ARN
)

// The API's patterns, of which each value must match the whole.
const (
	namePattern = `[a-zA-Z0-9_.-]+`
	arnPattern  = `arn:aws.*:kinesis:.*:\d{12}:stream/\S+`
	hashPattern = `0|([1-9]\d{0,38})`
)

var (
	streamName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:` + namePattern + `)$`)
	})
	hashKey = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:` + hashPattern + `)$`)
	})
	// streamARN is stricter than the API's pattern: an ARN without a valid name is no stream's.
	streamARN = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`^arn:aws.*:kinesis:.*:\d{12}:stream/([a-zA-Z0-9_.-]{1,128})$`)
	})
)

// check returns the faults of a request, or nil, so that the proxy takes no record of a wrong
// request. The errors are the server's: the same codes and texts, in the same order. limit is the
// most bytes that a record can have, whatever its stream's limit is.
func check(operation string, in *wire.PutRecordsInput, limit int) *wire.Error {
	v := violations{operation: operation}
	v.checkList(in.Records)
	for i := range in.Records {
		v.checkEntry(i, &in.Records[i])
	}
	v.checkStream(&in.StreamRef)
	if err := v.err(); err != nil {
		return err
	}
	bytes := 0
	for i := range in.Records {
		bytes += in.Records[i].Size()
	}
	if v.outOfRange != nil {
		return invalid("Invalid ExplicitHashKey. ExplicitHashKey must be in the range: "+
			"[0, 2^128-1]. Specified value was %s", *v.outOfRange)
	}
	if err := checkStreams(&in.StreamRef); err != nil {
		return err
	}
	if bytes > maxBytes && operation == putRecords {
		return invalid("Records size exceeds %d MB limit", maxBytes>>20)
	}
	for i := range in.Records {
		if size := in.Records[i].Size(); size > limit {
			v.texts = append(v.texts, fmt.Sprintf("Value at '%s' failed to satisfy constraint: "+
				"data and partition key have %d bytes, more than %d",
				v.member(i, "data"), size, limit))
		}
	}
	return v.err()
}

// checkStreams checks that a request names one stream.
func checkStreams(r *wire.StreamRef) *wire.Error {
	switch {
	case r.StreamName == nil && r.StreamARN == nil:
		return invalid("Either StreamName or StreamARN must be provided.")
	case r.StreamName == nil || r.StreamARN == nil:
		return nil
	}
	if _, name, _ := strings.Cut(*r.StreamARN, ":stream/"); name != *r.StreamName {
		return invalid("StreamARN %s and StreamName %s do not name the same stream.",
			*r.StreamARN, *r.StreamName)
	}
	return nil
}

func invalid(format string, args ...any) *wire.Error {
	return &wire.Error{Code: awserr.CodeArgument, Message: fmt.Sprintf(format, args...)}
}

// violations collects the constraints of the API's model that a request breaks.
type violations struct {
	operation string
	texts     []string

	outOfRange *string // the first hash key that is a number above the range
}

// maxViolations is the most that AWS lists.
const maxViolations = 10

// err returns a ValidationException, or nil.
func (v *violations) err() *wire.Error {
	texts := v.texts[:min(len(v.texts), maxViolations)]
	if len(texts) == 0 {
		return nil
	}
	plural := "s"
	if len(texts) == 1 {
		plural = ""
	}
	return &wire.Error{Code: awserr.CodeValidation, Message: fmt.Sprintf(
		"%d validation error%s detected: %s", len(texts), plural, strings.Join(texts, "; "))}
}

func (v *violations) add(member, value, constraint string) {
	v.texts = append(v.texts, fmt.Sprintf("Value '%s' at '%s' failed to satisfy constraint: "+
		"Member must %s", wire.Echo(value), member, constraint))
}

func (v *violations) missing(member string) {
	v.texts = append(v.texts, "Value null at '"+member+
		"' failed to satisfy constraint: Member must not be null")
}

// length checks the length of a value.
func (v *violations) length(member, value string, n, least, most int) {
	if n < least {
		v.add(member, value, fmt.Sprint("have length greater than or equal to ", least))
	}
	if n > most {
		v.add(member, value, fmt.Sprint("have length less than or equal to ", most))
	}
}

// maxMatched bounds the texts that are matched with a pattern, in bytes. Every longer one breaks
// its pattern or its maximum length anyway.
const maxMatched = 64 << 10

// pattern checks that a whole value matches.
func (v *violations) pattern(member, value string, matches *regexp.Regexp, pattern string) {
	if len(value) > maxMatched || !matches.MatchString(value) {
		v.add(member, value, "satisfy regular expression pattern: "+pattern)
	}
}

// member returns the name that messages have for a record's member.
func (v *violations) member(i int, name string) string {
	if v.operation == putRecord {
		return name
	}
	return fmt.Sprintf("records.%d.member.%s", i+1, name)
}

func (v *violations) checkList(records []wire.PutEntry) {
	if records == nil {
		v.missing("records")
		return
	}
	// As AWS shows a list of structures. More elements do not fit into a message.
	const element = ", com.amazonaws.kinesis.v20131202.PutRecordsRequestEntry@2"
	const shown = wire.MaxEcho/len(element) + 1
	if n := len(records); n < 1 || n > wire.MaxPutRecords {
		list := strings.TrimPrefix(strings.Repeat(element, min(n, shown)), ", ")
		v.length("records", "["+list+"]", n, 1, wire.MaxPutRecords)
	}
}

func (v *violations) checkEntry(i int, e *wire.PutEntry) {
	if len(v.texts) >= maxViolations {
		return
	}
	if key := e.PartitionKey; key == nil {
		v.missing(v.member(i, "partitionKey"))
	} else if *key == "" || len(*key) > maxKey { // in bytes, which are no fewer than characters
		v.length(v.member(i, "partitionKey"), *key, utf8.RuneCountInString(*key), 1, maxKey)
	}
	if e.ExplicitHashKey != nil {
		v.checkHashKey(i, e.ExplicitHashKey)
	}
	if e.Data == nil {
		v.missing(v.member(i, "data"))
	} else if n := len(e.Data); n > maxData {
		value := fmt.Sprintf("java.nio.HeapByteBuffer[pos=0 lim=%d cap=%d]", n, n)
		v.length(v.member(i, "data"), value, n, 0, maxData)
	}
}

func (v *violations) checkHashKey(i int, hash *string) {
	if _, err := keyspace.Parse(*hash); err == nil {
		return
	}
	before := len(v.texts)
	v.pattern(v.member(i, "explicitHashKey"), *hash, hashKey(), hashPattern)
	if len(v.texts) == before && v.outOfRange == nil {
		v.outOfRange = hash
	}
}

func (v *violations) checkStream(r *wire.StreamRef) {
	if name := r.StreamName; name != nil {
		v.pattern("streamName", *name, streamName(), namePattern)
		v.length("streamName", *name, utf8.RuneCountInString(*name), 1, maxName)
	}
	if arn := r.StreamARN; arn != nil {
		v.pattern("streamARN", *arn, streamARN(), arnPattern)
		v.length("streamARN", *arn, utf8.RuneCountInString(*arn), 1, maxARN)
	}
}
