package kinesis

import (
	"context"
	"fmt"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/wire"
)

type putRecordsInput struct {
	target
	Records []putRecordEntry

	origin *wire.Origin
}

// cameBy is part of dated.
func (in *putRecordsInput) cameBy(o *wire.Origin) { in.origin = o }

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

// recordMember returns the prefix of the names of a record's members.
func recordMember(i int) string { return fmt.Sprintf("records.%d.member.", i+1) }

// putRecords stores up to 500 records. The request as a whole is refused or taken; of one that
// is taken, single records may fail, which their results say, in the request's order. A server that
// takes nothing now, or not this late, says so of each record: as the answer of the whole call, the
// API has no error that says for certain that nothing was stored.
func (s *Service) putRecords(
	ctx context.Context, world wire.World, in *putRecordsInput,
) (any, error) {
	results := make([]putResult, len(in.Records))
	failOnRequest(fault.From(ctx), results)
	err := s.put(ctx, world, putRequest{
		target: &in.target, origin: in.origin, entries: in.Records, results: results,
		member: recordMember,
	})
	switch {
	case NotStored(err):
		for i := range results {
			results[i].code = codeRecordInternal
			results[i].message = "Internal service failure: nothing was stored: " + err.Error()
		}
	case err != nil:
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
