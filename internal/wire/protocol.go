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
// test/connection.js), JSON at DynamoDB (dynalite, index.js). Without a body and a known target,
// the answer is Kinesis's.
//
// Kinesis speaks awsJson1_1 and CBOR. Any other type is unknown to it, awsJson1_0 too
// (kinesalite, test/connection.js), and application/json never leads to an operation: see
// refusePlain. SubscribeToShard is taken in CBOR like the others, and answered with JSON events.
// AWS answers it with 500 (LocalStack, test_subscribe_to_shard_cbor_at_timestamp), and no SDK sends
// it.
//
// DynamoDB speaks awsJson1_0 and application/json; any other type is unknown to it (dynalite,
// test/connection.js), and so, by the same rule, is CBOR. CloudWatch, where a target header names
// it, speaks awsJson1_0 (the service model).
func (x *Exchange) speak(contentType string, empty bool) bool {
	older := x.Call.Service == DynamoDB || x.Call.Service == CloudWatch // they speak awsJson1_0
	switch contentType {
	case json11:
		if !older {
			x.Call.Format, x.contentType = JSON, json11
			return true
		}
	case json10, plainJSON:
		if older || x.Call.Service == "" && !empty {
			x.Call.Format, x.contentType = JSON, contentType
			return true
		}
	case cbor10, cbor11:
		if !older {
			x.Call.Format, x.contentType = CBOR, cbor11
			return true
		}
	}
	x.Call.Format, x.contentType = CBOR, cbor11
	if older {
		x.Call.Format, x.contentType = JSON, plainJSON
	}
	return false
}
