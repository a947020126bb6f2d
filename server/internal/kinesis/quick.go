package kinesis

import (
	"strings"

	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/catalogue"
)

// The frequent inputs have their own checks: walking through 500 records with reflection takes as
// long as decoding them. An input that passes here breaks no constraint of the model; TestQuick and
// FuzzQuick hold the two together.

// The model's bounds; TestQuick compares them with the model.
const (
	maxPutRecords   = wire.MaxPutRecords
	maxData         = 10 << 20 // bytes
	maxPartitionKey = 256      // characters; bytes here, which are no fewer
	maxHashKey      = 39       // digits
	maxName         = 128
	maxARN          = 2048
	maxIterator     = 512
)

// fine implements quick.
func (in *putRecordsInput) fine() bool {
	if len(in.Records) < 1 || len(in.Records) > maxPutRecords {
		return false
	}
	for i := range in.Records {
		if !fineRecord(&in.Records[i]) {
			return false
		}
	}
	return in.target().fineTarget()
}

// fine implements quick.
func (in *putRecordInput) fine() bool {
	return fineRecord(&in.PutEntry) && in.SequenceNumberForOrdering == nil &&
		in.target().fineTarget()
}

// fine implements quick.
func (in *getRecordsInput) fine() bool {
	return fineText(in.ShardIterator, maxIterator) && in.ShardIterator != nil &&
		(in.Limit == nil || *in.Limit >= 1 && *in.Limit <= maxGetRecords) && fineARN(in.StreamARN)
}

func fineRecord(e *wire.PutEntry) bool {
	return e.Data != nil && len(e.Data) <= maxData &&
		e.PartitionKey != nil && fineText(e.PartitionKey, maxPartitionKey) &&
		(e.ExplicitHashKey == nil || isDecimal(*e.ExplicitHashKey, maxHashKey))
}

func (t *target) fineTarget() bool {
	name := t.StreamName
	return (name == nil || len(*name) <= maxName && catalogue.IsName(*name)) && fineARN(t.StreamARN)
}

func fineText(text *string, limit int) bool {
	return text == nil || len(*text) >= 1 && len(*text) <= limit
}

// fineARN recognises AWS's form of a stream's ARN: "arn:aws:kinesis:R:A:stream/S".
func fineARN(arn *string) bool {
	if arn == nil {
		return true
	}
	parts := strings.SplitN(*arn, ":", 6)
	if len(*arn) > maxARN || len(parts) != 6 {
		return false
	}
	name, isStream := strings.CutPrefix(parts[5], "stream/")
	return parts[0] == "arn" && parts[1] == "aws" && parts[2] == "kinesis" &&
		catalogue.IsName(parts[3]) &&
		len(parts[4]) == 12 && strings.Trim(parts[4], "0123456789") == "" &&
		isStream && catalogue.IsName(name)
}
