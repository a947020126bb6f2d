package kinesis

import (
	"errors"
	"strings"
	"testing"

	"github.com/runnel-stream/runnel/internal/wire"
)

// The texts of kinesalite's tests, which ran against AWS, for the bounds of today's model. The
// order is AWS's where one of them shows it.
func TestConstraintTexts(t *testing.T) {
	n := newNode(t)
	long, long2 := strings.Repeat("a", 129), strings.Repeat("a", 257)
	empty := "Value '' at 'streamName' failed to satisfy constraint: Member must satisfy regular " +
		"expression pattern: [a-zA-Z0-9_.-]+; Value '' at 'streamName' failed to satisfy constraint: " +
		"Member must have length greater than or equal to 1"
	for _, c := range []struct{ operation, body, want string }{
		{
			"PutRecord",
			`{"StreamName":"","PartitionKey":"","Data":"","ExplicitHashKey":"",` +
				`"SequenceNumberForOrdering":""}`,
			"5 validation errors detected: Value '' at 'sequenceNumberForOrdering' failed to satisfy " +
				`constraint: Member must satisfy regular expression pattern: 0|([1-9]\d{0,128}); ` +
				"Value '' at 'partitionKey' failed to satisfy constraint: Member must have length greater " +
				"than or equal to 1; Value '' at 'explicitHashKey' failed to satisfy constraint: Member " +
				`must satisfy regular expression pattern: 0|([1-9]\d{0,38}); ` + empty,
		},
		{
			"PutRecords", `{"StreamName":"` + long + `","Records":[{"PartitionKey":"` + long2 +
				`","ExplicitHashKey":""}]}`,
			"4 validation errors detected: Value '" + long2 + "' at 'records.1.member.partitionKey' " +
				"failed to satisfy constraint: Member must have length less than or equal to 256; Value '' " +
				"at 'records.1.member.explicitHashKey' failed to satisfy constraint: Member must satisfy " +
				`regular expression pattern: 0|([1-9]\d{0,38}); Value null at 'records.1.member.data' ` +
				"failed to satisfy constraint: Member must not be null; Value '" + long + "' at " +
				"'streamName' failed to satisfy constraint: Member must have length less than or equal to 128",
		},
		{
			"PutRecords", `{"StreamName":"","Records":[]}`, "3 validation errors detected: Value '[]' at " +
				"'records' failed to satisfy constraint: Member must have length greater than or equal to 1; " +
				empty,
		},
		{
			"GetShardIterator",
			`{"StreamName":"","ShardIteratorType":"","ShardId":"","StartingSequenceNumber":""}`,
			"6 validation errors detected: Value '' at 'shardId' failed to satisfy constraint: Member " +
				"must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value '' at 'shardId' failed to " +
				"satisfy constraint: Member must have length greater than or equal to 1; Value '' at " +
				"'shardIteratorType' failed to satisfy constraint: Member must satisfy enum value set: " +
				"[AFTER_SEQUENCE_NUMBER, LATEST, AT_TIMESTAMP, AT_SEQUENCE_NUMBER, TRIM_HORIZON]; " +
				"Value '' at 'startingSequenceNumber' failed to satisfy constraint: Member must satisfy " +
				`regular expression pattern: 0|([1-9]\d{0,128}); ` + empty,
		},
		{
			"DescribeStream", `{"StreamName":"","Limit":100000,"ExclusiveStartShardId":""}`,
			"5 validation errors detected: Value '100000' at 'limit' failed to satisfy constraint: Member " +
				"must have value less than or equal to 10000; Value '' at 'exclusiveStartShardId' failed to " +
				"satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; " +
				"Value '' at 'exclusiveStartShardId' failed to satisfy constraint: Member must have length " +
				"greater than or equal to 1; " + empty,
		},
		{
			"AddTagsToStream", `{"StreamName":"","Tags":{}}`, "3 validation errors detected: Value '{}' at " +
				"'tags' failed to satisfy constraint: Member must have length greater than or equal to 1; " +
				empty,
		},
		{
			"AddTagsToStream", `{"StreamName":"a","Tags":{"b":"` + long2 + `","a":"1"}}`,
			"1 validation error detected: Value '{a=1, b=" + long2 + "}' at 'tags' failed to satisfy " +
				"constraint: Map value must satisfy constraint: [Member must have length less than or equal " +
				"to 256, Member must have length greater than or equal to 0]",
		},
		{
			"AddTagsToStream", `{"StreamName":"a","Tags":{"` + long + `":"3"}}`,
			"1 validation error detected: Value '{" + long + "=3}' at 'tags' failed to satisfy " +
				"constraint: Map keys must satisfy constraint: [Member must have length less than or equal " +
				"to 128, Member must have length greater than or equal to 1]",
		},
		{
			"RemoveTagsFromStream", `{"StreamName":"a","TagKeys":["a","` + long + `","b"]}`,
			"1 validation error detected: Value '[a, " + long + ", b]' at 'tagKeys' failed to satisfy " +
				"constraint: Member must satisfy constraint: [Member must have length less than or equal to " +
				"128, Member must have length greater than or equal to 1]",
		},
		{
			"RemoveTagsFromStream", `{"StreamName":"a","TagKeys":["1"` + strings.Repeat(`,"1"`, 50) + `]}`,
			"1 validation error detected: Value '[1" + strings.Repeat(", 1", 50) + "]' at 'tagKeys' failed " +
				"to satisfy constraint: Member must have length less than or equal to 50",
		},
		{
			"UpdateShardCount", `{"StreamName":"","ScalingType":"","TargetShardCount":0}`,
			"4 validation errors detected: Value '0' at 'targetShardCount' failed to satisfy constraint: " +
				"Member must have value greater than or equal to 1; Value '' at 'scalingType' failed to " +
				"satisfy constraint: Member must satisfy enum value set: [UNIFORM_SCALING]; " + empty,
		},
		// From here on the texts are those of the model alone.
		{
			"EnableEnhancedMonitoring", `{"StreamName":"a","ShardLevelMetrics":["ALL","none"]}`,
			"1 validation error detected: Value '[ALL, none]' at 'shardLevelMetrics' failed to satisfy " +
				"constraint: Member must satisfy constraint: [Member must satisfy enum value set: " +
				"[IncomingBytes, IncomingRecords, OutgoingBytes, OutgoingRecords, " +
				"WriteProvisionedThroughputExceeded, ReadProvisionedThroughputExceeded, " +
				"IteratorAgeMilliseconds, ALL]]",
		},
		{
			"SubscribeToShard", `{"ShardId":"a b","StartingPosition":{"SequenceNumber":"x"}}`,
			"4 validation errors detected: Value null at 'consumerARN' failed to satisfy constraint: " +
				"Member must not be null; Value 'a b' at 'shardId' failed to satisfy constraint: Member must " +
				"satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value null at 'startingPosition.type' " +
				"failed to satisfy constraint: Member must not be null; Value 'x' at " +
				"'startingPosition.sequenceNumber' failed to satisfy constraint: Member must satisfy regular " +
				`expression pattern: 0|([1-9]\d{0,128})`,
		},
		{
			"ListShards", `{"StreamName":"a","ShardFilter":{"ShardId":"","Type":"x"}}`,
			"3 validation errors detected: Value 'x' at 'shardFilter.type' failed to satisfy constraint: " +
				"Member must satisfy enum value set: [AFTER_SHARD_ID, AT_TRIM_HORIZON, FROM_TRIM_HORIZON, " +
				"AT_LATEST, AT_TIMESTAMP, FROM_TIMESTAMP]; Value '' at 'shardFilter.shardId' failed to " +
				"satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value " +
				"'' at 'shardFilter.shardId' failed to satisfy constraint: Member must have length greater " +
				"than or equal to 1",
		},
	} {
		for _, format := range []wire.Format{wire.JSON, wire.CBOR} {
			_, err := n.Serve(n.ctx, &wire.Call{
				Operation: c.operation, Format: format, Body: inFormat(t, format, c.body), World: here,
			})
			var wire *wire.Error
			if !errors.As(err, &wire) || wire.Code != codeValidation || wire.Message != c.want {
				t.Errorf("%s %s:\n%v\nwant\n%s", c.operation, c.body, err, c.want)
			}
		}
	}
}

// An operation without members has no constraints.
func TestNoMembers(t *testing.T) {
	n := newNode(t)
	for _, body := range []string{`{}`, `null`, `{"Anything":[1]}`} {
		if _, err := n.raw(n.ctx, "DescribeLimits", body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// If a request has too many records, AWS shows each of them and goes on with the first ones.
func TestTooManyRecords(t *testing.T) {
	n := newNode(t)
	body := `{"StreamName":"","Records":[{}` + strings.Repeat(`,{}`, 5999) + `]}`
	_, err := n.raw(n.ctx, "PutRecords", body)
	var wire *wire.Error
	if !errors.As(err, &wire) || wire.Code != codeValidation {
		t.Fatal(err)
	}
	parts := strings.Split(wire.Message, "; ")
	if len(parts) != 10 || len(wire.Message) > 5000 ||
		!strings.HasPrefix(parts[0], "10 validation errors detected: Value '[com.amazonaws.kinesis.") ||
		!strings.HasSuffix(parts[0], "Member must have length less than or equal to 500") ||
		!strings.HasPrefix(parts[1], "Value null at 'records.1.member.partitionKey'") {
		t.Errorf("%d parts: %s", len(parts), wire.Message)
	}
}
