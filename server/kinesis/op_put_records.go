package kinesis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/runnel-stream/runnel/internal/awswire"
	"github.com/runnel-stream/runnel/internal/fault"
)

type putRecordsInput struct {
	target
	Records []putRecordEntry
}

// The limits of a request (AWS, "PutRecords").
const (
	maxPutRecords = 500
	maxPutBytes   = 10 << 20 // of data and partition keys
)

func (in *putRecordsInput) validate(v *violations) {
	bytes := 0
	switch n := len(in.Records); {
	case in.Records == nil:
		v.missing("records")
	case n == 0:
		v.add("records", "[]", "Member must have length greater than or equal to 1")
	case n > maxPutRecords:
		v.add("records", fmt.Sprintf("[%d records]", n),
			fmt.Sprint("Member must have length less than or equal to ", maxPutRecords))
	default:
		for i := range in.Records {
			e := &in.Records[i]
			e.validate(v, func() string { return recordMember(i) })
			bytes += len(e.Data)
			if e.PartitionKey != nil {
				bytes += len(*e.PartitionKey)
			}
		}
	}
	in.target.validate(v)
	if bytes > maxPutBytes {
		v.fail(invalid("Records size exceeds %d MB limit", maxPutBytes>>20))
	}
}

// recordMember is what the names of a record's members begin with.
func recordMember(i int) string { return fmt.Sprintf("records.%d.member.", i+1) }

// putRecords stores up to 500 records. The request as a whole is refused or taken; of one that
// is taken, single records may fail, which their results say, in the request's order.
func (s *Service) putRecords(
	ctx context.Context, world awswire.World, in *putRecordsInput,
) (any, error) {
	results := make([]putResult, len(in.Records))
	failOnRequest(fault.From(ctx), results)
	if err := s.put(ctx, world, &in.target, in.Records, results, recordMember); err != nil {
		return nil, err
	}
	return encodePutRecords(results), nil
}

// failOnRequest marks the records for which a failure was asked.
func failOnRequest(decision fault.Decision, results []putResult) {
	for _, i := range decision.FailRecords(len(results)) {
		results[i].code = codeRecordInternal
	}
	for _, i := range decision.ThrottleRecords(len(results)) {
		results[i].code = codeThrottled
	}
}

// encodePutRecords writes the answer. It is written out by hand because it is hot; nothing in
// it needs escaping but messages.
func encodePutRecords(results []putResult) rawJSON {
	failed := 0
	for i := range results {
		if results[i].code != "" {
			failed++
		}
	}
	dst := make([]byte, 0, 64+128*len(results))
	dst = append(dst, `{"FailedRecordCount":`...)
	dst = strconv.AppendInt(dst, int64(failed), 10)
	dst = append(dst, `,"Records":[`...)
	for i := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		r := &results[i]
		if r.code != "" {
			dst = append(dst, `{"ErrorCode":`...)
			dst = appendString(dst, r.code)
			dst = append(dst, `,"ErrorMessage":`...)
			dst = appendString(dst, r.message)
		} else {
			dst = append(dst, `{"SequenceNumber":"`...)
			dst = r.shard.number(r.number.Index, r.number.Arrival).appendText(dst)
			dst = append(dst, `","ShardId":"`...)
			dst = appendShardName(dst, r.shard.Index)
			dst = append(dst, '"')
		}
		dst = append(dst, '}')
	}
	return append(dst, `]}`...)
}
