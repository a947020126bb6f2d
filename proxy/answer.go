package proxy

import (
	"encoding/json"

	"github.com/fxamacker/cbor/v2"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/producer"
)

// putResult is PutRecord's answer, and PutRecords' for one record: where it was stored, or why
// it was not.
type putResult struct {
	ShardID        string `json:"ShardId,omitempty"`
	SequenceNumber string `json:"SequenceNumber,omitempty"`
	ErrorCode      string `json:"ErrorCode,omitempty"`
	ErrorMessage   string `json:"ErrorMessage,omitempty"`
}

// putResults is PutRecords' answer.
type putResults struct {
	FailedRecordCount int
	Records           []putResult
}

// encode writes the answer of a call. Of PutRecord, whose one record was stored, it is that
// record's place.
func encode(call *wire.Call, results []producer.Result) ([]byte, error) {
	answer := putResults{Records: make([]putResult, len(results))}
	for i := range results {
		if err := results[i].Err; err != nil {
			failure := answerTo(err)
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
