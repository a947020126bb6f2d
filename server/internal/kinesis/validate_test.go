package kinesis

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/wire"
)

// The texts are AWS's, as far as they are known.
func TestConstraints(t *testing.T) {
	n := newNode(t)
	long := strings.Repeat("a", 129)
	one := "1 validation error detected: "
	name := func(value, constraint string) string {
		return "Value '" + value + "' at 'streamName' failed to satisfy constraint: Member must " +
			constraint
	}
	pattern := "satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
	for _, c := range []struct{ operation, body, want string }{
		{"DescribeStreamSummary", `{"StreamName":""}`, "2 validation errors detected: " +
			name("", pattern) + "; " + name("", "have length greater than or equal to 1")},
		{
			"DescribeStreamSummary", `{"StreamName":"` + long + `"}`,
			one + name(long, "have length less than or equal to 128"),
		},
		{"DescribeStreamSummary", `{"StreamName":"a b"}`, one + name("a b", pattern)},
		{"DescribeStreamSummary", `{"StreamARN":"arn:aws:s3:x"}`, one + "Value 'arn:aws:s3:x' at " +
			`'streamARN' failed to satisfy constraint: Member must satisfy regular expression ` +
			`pattern: arn:aws.*:kinesis:.*:\d{12}:stream/\S+`},
		{"CreateStream", `{}`, one + "Value null at 'streamName' failed to satisfy constraint: " +
			"Member must not be null"},
		{"CreateStream", `{"StreamName":"a","ShardCount":0}`, one + "Value '0' at 'shardCount' failed " +
			"to satisfy constraint: Member must have value greater than or equal to 1"},
		{"CreateStream", `{"StreamName":"a","MaxRecordSizeInKiB":10241}`, one + "Value '10241' at " +
			"'maxRecordSizeInKiB' failed to satisfy constraint: Member must have value less than or " +
			"equal to 10240"},
		{"CreateStream", `{"StreamName":"a","StreamModeDetails":{"StreamMode":"x"}}`, one + "Value 'x' " +
			"at 'streamModeDetails.streamMode' failed to satisfy constraint: Member must satisfy enum " +
			"value set: [PROVISIONED, ON_DEMAND]"},
		{"CreateStream", `{"StreamName":"a","Tags":{"":"v","k":null}}`, "2 validation errors detected: " +
			"Value '{=v, k=null}' at 'tags' failed to satisfy constraint: Map keys must satisfy " +
			"constraint: [Member must have length less than or equal to 128, Member must have length " +
			"greater than or equal to 1]; Value '{=v, k=null}' at 'tags' failed to satisfy constraint: " +
			"Map value must satisfy constraint: [Member must have length less than or equal to 256, " +
			"Member must have length greater than or equal to 0]"},
		{"PutRecord", `{"StreamName":"a"}`, "2 validation errors detected: Value null at 'partitionKey' " +
			"failed to satisfy constraint: Member must not be null; Value null at 'data' failed to " +
			"satisfy constraint: Member must not be null"},
		{
			"PutRecord", `{"StreamName":"a","Data":"","PartitionKey":"","ExplicitHashKey":"01"}`,
			"2 validation errors detected: Value '' at 'partitionKey' failed to satisfy constraint: " +
				"Member must have length greater than or equal to 1; Value '01' at 'explicitHashKey' " +
				`failed to satisfy constraint: Member must satisfy regular expression pattern: ` +
				`0|([1-9]\d{0,38})`,
		},
		{"PutRecords", `{"StreamName":"a"}`, one + "Value null at 'records' failed to satisfy " +
			"constraint: Member must not be null"},
		{"PutRecords", `{"StreamName":"a","Records":[]}`, one + "Value '[]' at 'records' failed to " +
			"satisfy constraint: Member must have length greater than or equal to 1"},
		{
			"PutRecords", `{"StreamName":"a","Records":[{"Data":"","PartitionKey":"k"},null]}`,
			"2 validation errors detected: Value null at 'records.2.member.partitionKey' failed to " +
				"satisfy constraint: Member must not be null; Value null at 'records.2.member.data' " +
				"failed to satisfy constraint: Member must not be null",
		},
		{"GetRecords", `{"ShardIterator":"","Limit":0}`, "2 validation errors detected: Value '' at " +
			"'shardIterator' failed to satisfy constraint: Member must have length greater than or " +
			"equal to 1; Value '0' at 'limit' failed to satisfy constraint: Member must have value " +
			"greater than or equal to 1"},
		{"SplitShard", `{"StreamName":"a","ShardToSplit":"s","NewStartingHashKey":"x"}`, one +
			"Value 'x' at 'newStartingHashKey' failed to satisfy constraint: Member must satisfy " +
			`regular expression pattern: 0|([1-9]\d{0,38})`},
		{"IncreaseStreamRetentionPeriod", `{"StreamName":"a"}`, one + "Value null at " +
			"'retentionPeriodHours' failed to satisfy constraint: Member must not be null"},
	} {
		_, err := n.raw(n.ctx, c.operation, c.body)
		var wire *wire.Error
		if !errors.As(err, &wire) || wire.Code != codeValidation || wire.Message != c.want {
			t.Errorf("%s %s:\n%v\nwant\n%s", c.operation, c.body, err, c.want)
		}
	}
}

func TestArguments(t *testing.T) {
	n := newNode(t)
	n.create("a", 1)
	both := `{"StreamName":"a","StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/b"}`
	for _, c := range []struct{ operation, body, want string }{
		{"DescribeStreamSummary", `{}`, "Either StreamName or StreamARN must be provided."},
		{"DescribeStreamSummary", both, "do not name the same stream"},
		{
			"PutRecord", `{"StreamName":"a","Data":"","PartitionKey":"k",` +
				`"ExplicitHashKey":"340282366920938463463374607431768211456"}`,
			"Invalid ExplicitHashKey. ExplicitHashKey must be in the range: [0, 2^128-1]. " +
				"Specified value was 340282366920938463463374607431768211456",
		},
	} {
		_, err := n.raw(n.ctx, c.operation, c.body)
		wantError(t, err, codeInvalid, c.want)
	}
	_, err := n.raw(n.ctx, "DescribeStreamSummary",
		`{"StreamARN":"arn:aws:x:kinesis:us-east-1:000000000000:stream/a"}`)
	wantError(t, err, codeNotFound, "Stream a")
}

// At most ten faults are listed, and no more than a part of a huge value.
func TestManyViolations(t *testing.T) {
	var v violations
	huge := strings.Repeat("é", 10_000)
	for i := range 20 {
		v.add(fmt.Sprint("m", i), huge, "none")
	}
	text := v.err().Error()
	if !strings.Contains(text, "10 validation errors") || len(text) > 10*(wire.MaxEcho+200) {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}

func TestSerialization(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct{ operation, body, want string }{
		{"DescribeStreamSummary", ``, "not a JSON document"},
		{"DescribeStreamSummary", `{"StreamName":"a"`, "not a JSON document"},
		{"DescribeStreamSummary", `{"StreamName":"a"} x`, "not a JSON document"},
		{"DescribeStreamSummary", `[]`, "Start of list found where not expected"},
		{
			"DescribeStreamSummary", `{"StreamName":1}`,
			"class com.amazon.coral.value.json.numbers.TruncatingBigNumber can not be converted to an String",
		},
		{
			"DescribeStreamSummary", `{"StreamName":true}`,
			"class java.lang.Boolean can not be converted to an String",
		},
		{"DescribeStreamSummary", `{"StreamName":[]}`, "Start of list found where not expected"},
		{
			"DescribeStreamSummary", `{"StreamName":{}}`,
			"Start of structure or map found where not expected.",
		},
		{
			"CreateStream", `{"ShardCount":"1"}`,
			"class java.lang.String can not be converted to an Integer",
		},
		{"CreateStream", `{"ShardCount":{}}`, "Start of structure or map found where not expected."},
		{"CreateStream", `{"Tags":"x"}`, "Expected map or null"},
		{
			"DeleteStream", `{"EnforceConsumerDeletion":"maybe"}`,
			"'MAYBE' can not be converted to an Boolean",
		},
		{"PutRecords", `{"Records":{}}`, "Start of structure or map found where not expected."},
		{"PutRecords", `{"Records":"x"}`, "Expected list or null"},
		{"PutRecords", `{"Records":["x"]}`, "Expected null"},
		{"PutRecord", `{"Data":1}`, "class com.amazon.coral.value.json.numbers.TruncatingBigNumber can not be converted to a Blob"},
		{
			"PutRecord", `{"Data":"23456"}`, "'23456' can not be converted to a Blob: Base64 encoded " +
				"length is expected a multiple of 4 bytes but found: 5",
		},
		{
			"PutRecord", `{"Data":"=+/="}`,
			"'=+/=' can not be converted to a Blob: Invalid Base64 character: '='",
		},
		{"PutRecord", `{"Data":"QUJD\nQUI"}`, "Invalid Base64 character: '\n'"},
		{"PutRecord", `{"Data":"QUJD\n\n\n\n"}`, "Invalid Base64 character: '\n'"},
		{"PutRecord", `{"Data":"+/+="}`, "'+/+=' can not be converted to a Blob: Invalid last " +
			"non-pad Base64 character dectected"},
		{
			"ListShards", `{"StreamCreationTimestamp":"x"}`,
			"class java.lang.String can not be converted to milliseconds since epoch",
		},
	} {
		_, err := n.raw(n.ctx, c.operation, c.body)
		wantError(t, err, codeSerialization, c.want)
	}
	n.create("a", 1)
	for _, body := range []string{
		`{"StreamName":"a","ExclusiveStartShardId":null,"Limit":1.9,"Unknown":{"x":[1]}}`,
		`{"StreamName":"a","Limit":1e0,"StreamId":"x"}`,
	} {
		if _, err := n.raw(n.ctx, "DescribeStream", body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Whatever the body is, the answer is JSON or an error of the API.
func FuzzServe(f *testing.F) {
	n := newNode(f)
	n.create("orders", 2)
	n.put("orders", "k", "data")
	iterator := n.iterator("orders", "0", "TRIM_HORIZON")
	for _, seed := range []struct{ operation, body string }{
		{"PutRecords", `{"StreamName":"orders","Records":[{"Data":"QQ==","PartitionKey":"k"}]}`},
		{"PutRecord", `{"StreamName":"orders","Data":"QQ==","PartitionKey":"k","ExplicitHashKey":"1"}`},
		{"GetRecords", `{"ShardIterator":"` + iterator + `","Limit":5}`},
		{"GetShardIterator", `{"StreamName":"orders","ShardId":"0","ShardIteratorType":` +
			`"AT_TIMESTAMP","Timestamp":1.5e9}`},
		{"ListShards", `{"StreamARN":"arn:aws:kinesis:us-east-1:000000000000:stream/orders",` +
			`"ShardFilter":{"Type":"AFTER_SHARD_ID","ShardId":"shardId-000000000000"}}`},
		{"ListStreams", `{"Limit":1,"NextToken":"AAAA"}`},
		{"SplitShard", `{"StreamName":"orders","ShardToSplit":"1","NewStartingHashKey":"5"}`},
		{"DescribeStream", `{"StreamName":"orders"}`},
	} {
		f.Add(seed.operation, seed.body)
	}
	f.Fuzz(func(t *testing.T, operation, body string) {
		if operation == "CreateStream" {
			return // they would add up
		}
		n.t = t
		_, err := n.raw(n.ctx, operation, body)
		var wire *wire.Error
		if err != nil && !errors.As(err, &wire) {
			t.Fatalf("%s %s: %v", operation, body, err)
		}
	})
}
