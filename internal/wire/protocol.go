package wire

// The types of documents.
const (
	json10    = "application/x-amz-json-1.0"
	json11    = "application/x-amz-json-1.1"
	plainJSON = "application/json"
	cbor10    = "application/x-amz-cbor-1.0"
	cbor11    = "application/x-amz-cbor-1.1"
)

// speak sets the protocol by a request's content type: the format of its body and its answer, and
// the answer's type. It reports whether the call's service speaks it. If not, it sets the protocol
// of AWS's answers to requests without a body: CBOR at Kinesis, for any content type (kinesalite,
// index.js), JSON at DynamoDB (dynalite, index.js).
//
// Kinesis speaks awsJson1_1 and CBOR. Any other type is unknown to it, awsJson1_0 too
// (kinesalite, test/connection.js), and application/json never leads to an operation.
// SubscribeToShard is taken in CBOR like the others, and answered with JSON events; AWS answers it
// with 500 (LocalStack, test_subscribe_to_shard_cbor_at_timestamp), and no SDK sends it.
//
// DynamoDB speaks awsJson1_0 and application/json; any other type is unknown to it (dynalite,
// test/connection.js), and so, by the same rule, is CBOR. CloudWatch, where a target header names
// it, speaks awsJson1_0 (the service model).
func (x *Exchange) speak(contentType string) bool {
	dynamo, watch := x.Call.Service == DynamoDB, x.Call.Service == CloudWatch
	switch contentType {
	case json11:
		x.Call.Format, x.contentType = JSON, json11
		return !dynamo && !watch
	case json10, plainJSON:
		x.Call.Format, x.contentType = JSON, contentType
		return dynamo || watch || x.Call.Service == ""
	case cbor10, cbor11:
		x.Call.Format, x.contentType = CBOR, cbor11
		if !dynamo && !watch {
			return true
		}
	}
	x.Call.Format, x.contentType = CBOR, cbor11
	if dynamo || watch {
		x.Call.Format, x.contentType = JSON, plainJSON
	}
	return false
}
