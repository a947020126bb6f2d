package proxy

import "github.com/runnel-stream/runnel/internal/wire"

// The operations that put.
const (
	putRecord  = "PutRecord"
	putRecords = "PutRecords"
)

// decode reads a put's body with the server's decoder. A PutRecord becomes a request of one record.
// Its SequenceNumberForOrdering is ignored: the sequence numbers of a key always grow.
func decode(call *wire.Call) (*wire.PutRecordsInput, *wire.Error) {
	if call.Operation == putRecords {
		in := new(wire.PutRecordsInput)
		return in, in.Decode(call.Format, call.Body)
	}
	var one wire.PutRecordInput
	err := one.Decode(call.Format, call.Body)
	return &wire.PutRecordsInput{
		StreamRef: one.StreamRef, Records: []wire.PutEntry{one.PutEntry},
	}, err
}
