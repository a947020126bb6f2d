package proxy

import (
	"encoding/json"

	"github.com/fxamacker/cbor/v2"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/producer"
)

// putResult is the result of one record: its shard and sequence number, or its error. It is the
// whole answer of PutRecord, and an element of PutRecords's.
type putResult struct {
	ShardID        string `json:"ShardId,omitempty"`
	SequenceNumber string `json:"SequenceNumber,omitempty"`
	ErrorCode      string `json:"ErrorCode,omitempty"`
	ErrorMessage   string `json:"ErrorMessage,omitempty"`
}

// putResults is the answer of PutRecords.
type putResults struct {
	FailedRecordCount int
	Records           []putResult
}

// encode writes the answer of a call. A PutRecord has one result, without an error.
func encode(call *wire.Call, results []producer.Result) ([]byte, error) {
	answer := putResults{Records: make([]putResult, len(results))}
	for i := range results {
		if err := results[i].Err; err != nil {
			failure := errorOf(err)
			answer.FailedRecordCount++
			answer.Records[i] = putResult{ErrorCode: failure.Code, ErrorMessage: failure.Message}
			continue
		}
		answer.Records[i] = putResult{
			ShardID:        string(results[i].ShardID),
			SequenceNumber: string(results[i].Position.Sequence),
		}
	}
	var document any = &answer
	if call.Operation == putRecord {
		document = &answer.Records[0]
	}
	if call.Format == wire.CBOR {
		return cbor.Marshal(document)
	}
	return json.Marshal(document)
}
