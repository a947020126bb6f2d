package kinesis

import (
	"context"
	"fmt"

	"github.com/runnel-stream/runnel/internal/awswire"
	"github.com/runnel-stream/runnel/internal/fault"
)

type putRecordsInput struct {
	target
	Records []putRecordEntry
}

// maxPutBytes is how many bytes of data and partition keys a request can have (AWS,
// "PutRecords").
const maxPutBytes = 10 << 20

func (in *putRecordsInput) validate(v *violations) {
	bytes := 0
	for i := range in.Records {
		e := &in.Records[i]
		e.route(v)
		bytes += e.size()
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
	return &putRecordsOutput{results: results}, nil
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
