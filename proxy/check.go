package proxy

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	"github.com/runnel-stream/runnel/internal/awserr"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
)

// The API's limits (AWS, "PutRecords" and "UpdateMaxRecordSize").
const (
	maxRecords     = 500      // of a request
	maxBytes       = 10 << 20 // data and partition keys of a request
	maxRecordBytes = 10 << 20 // of a record, at the highest limit that a stream can have
	maxKey         = 256      // characters of a partition key
)

var (
	streamName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)
	streamARN  = regexp.MustCompile(`^arn:aws.*:kinesis:.*:\d{12}:stream/([a-zA-Z0-9_.-]{1,128})$`)
)

const maxARN = 2048 // characters of an ARN

// check returns what is wrong with a request, so that of one that is wrong nothing is taken:
// in AWS's codes, and with the names of members as AWS writes them. limit is the highest size
// of a record.
func (r *request) check(operation string, limit int) *wire.Error {
	if len(r.Records) < 1 || len(r.Records) > maxRecords {
		return invalid("Value with %d elements at 'records' failed to satisfy constraint: Member "+
			"must have length from 1 to %d", len(r.Records), maxRecords)
	}
	if err := r.target.check(); err != nil {
		return err
	}
	bytes := 0
	for i := range r.Records {
		member := ""
		if operation == putRecords {
			member = fmt.Sprintf("records.%d.member.", i+1)
		}
		if err := r.Records[i].check(member, limit); err != nil {
			return err
		}
		bytes += r.Records[i].size()
	}
	if bytes > maxBytes {
		return &wire.Error{Code: awserr.CodeArgument, Message: fmt.Sprintf(
			"Records size exceeds %d MB limit", maxBytes>>20)}
	}
	return nil
}

func (t *target) check() *wire.Error {
	if t.StreamName == nil && t.StreamARN == nil {
		return &wire.Error{
			Code: awserr.CodeArgument, Message: "Either StreamName or StreamARN must be provided.",
		}
	}
	if t.StreamName != nil && !streamName.MatchString(*t.StreamName) {
		return invalid("Value '%.200s' at 'streamName' failed to satisfy constraint: Member must "+
			"satisfy regular expression pattern: [a-zA-Z0-9_.-]{1,128}", *t.StreamName)
	}
	if t.StreamARN == nil {
		return nil
	}
	var parts []string
	if len(*t.StreamARN) <= maxARN {
		parts = streamARN.FindStringSubmatch(*t.StreamARN)
	}
	if parts == nil {
		return invalid("Value '%.200s' at 'streamARN' failed to satisfy constraint: Member must "+
			"be a stream's ARN", *t.StreamARN)
	}
	if t.StreamName != nil && *t.StreamName != parts[1] {
		return &wire.Error{Code: awserr.CodeArgument, Message: fmt.Sprintf(
			"StreamARN %s and StreamName %s do not name the same stream.",
			*t.StreamARN, *t.StreamName)}
	}
	return nil
}

func (e *entry) check(member string, limit int) *wire.Error {
	switch {
	case e.PartitionKey == nil:
		return missing(member + "partitionKey")
	case e.Data == nil:
		return missing(member + "data")
	}
	switch key := *e.PartitionKey; {
	case key == "" || utf8.RuneCountInString(key) > maxKey:
		return invalid("Value '%.200s' at '%spartitionKey' failed to satisfy constraint: Member "+
			"must have length from 1 to %d", key, member, maxKey)
	case !utf8.ValidString(key):
		return invalid("Value at '%spartitionKey' failed to satisfy constraint: Member must be "+
			"UTF-8", member)
	}
	if e.ExplicitHashKey != nil {
		if _, err := keyspace.Parse(*e.ExplicitHashKey); err != nil {
			return &wire.Error{Code: awserr.CodeArgument, Message: fmt.Sprintf("Invalid "+
				"ExplicitHashKey at '%sexplicitHashKey'. ExplicitHashKey must be in the range: "+
				"[0, 2^128-1]. Specified value was %.200s", member, *e.ExplicitHashKey)}
		}
	}
	if e.size() > limit {
		return invalid("Value at '%sdata' failed to satisfy constraint: data and partition key "+
			"have %d bytes, more than %d", member, e.size(), limit)
	}
	return nil
}

func missing(member string) *wire.Error {
	return invalid("Value null at '%s' failed to satisfy constraint: Member must not be null",
		member)
}

func invalid(format string, args ...any) *wire.Error {
	return &wire.Error{
		Code:    awserr.CodeValidation,
		Message: "1 validation error detected: " + fmt.Sprintf(format, args...),
	}
}
