package kinesis

import (
	"context"
	"errors"
	"fmt"

	"github.com/runnel-stream/runnel/internal/fault"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/keyspace"
	"github.com/runnel-stream/runnel/server/internal/memlimit"
)

type putRecordsInput struct {
	wire.PutRecordsInput

	hashes []keyspace.Key // of the records, once they were validated
	origin *wire.Origin
}

func (in *putRecordsInput) target() *target { return (*target)(&in.StreamRef) }

// name implements named.
func (in *putRecordsInput) name(world wire.World) (string, error) { return in.target().name(world) }

// cameBy is part of dated.
func (in *putRecordsInput) cameBy(o *wire.Origin) { in.origin = o }

// maxPutBytes is the maximum of data and partition keys in a request, in bytes (AWS, "PutRecords").
const maxPutBytes = 10 << 20

func (in *putRecordsInput) validate(v *violations) {
	bytes := 0
	in.hashes = make([]keyspace.Key, len(in.Records))
	for i := range in.Records {
		e := &in.Records[i]
		in.hashes[i] = route(e, v)
		bytes += e.Size()
	}
	in.target().validate(v)
	if bytes > maxPutBytes {
		v.fail(invalid("Records size exceeds %d MB limit", maxPutBytes>>20))
	}
}

// recordMember returns the prefix of the names of a record's members.
func recordMember(i int) string { return fmt.Sprintf("records.%d.member.", i+1) }

// putRecords stores up to 500 records. It refuses or accepts the request as a whole. In an accepted
// request single records may fail; the results say so, in the request's order. A server that cannot
// store now, or not this late, fails every record in the results: the API has no error for a whole
// call that says for certain that nothing was stored. A full memory is a limit, as a shard's is.
func (s *Service) putRecords(
	ctx context.Context, world wire.World, in *putRecordsInput,
) (any, error) {
	results := make([]putResult, len(in.Records))
	failOnRequest(fault.From(ctx), results)
	err := s.writer.put(ctx, world, putRequest{
		target: in.target(), origin: in.origin, entries: in.Records, hashes: in.hashes,
		results: results, member: recordMember,
	})
	switch {
	case errors.Is(err, memlimit.ErrFull):
		for i := range results {
			results[i].code, results[i].message = codeThrottled, "Rate exceeded. ("+err.Error()+")"
		}
	case NotStored(err):
		for i := range results {
			results[i].code = codeRecordInternal
			results[i].message = "Internal service failure: nothing was stored: " + err.Error()
		}
	case err != nil:
		return nil, err
	}
	s.streams.countRefused(world, in.target(), results)
	return &putRecordsOutput{results: results}, nil
}

// failOnRequest fails the records that a fault rule selects.
func failOnRequest(decision fault.Decision, results []putResult) {
	for _, i := range decision.FailRecords(len(results)) {
		results[i].code = codeRecordInternal
	}
	for _, i := range decision.ThrottleRecords(len(results)) {
		results[i].code = codeThrottled
	}
}
