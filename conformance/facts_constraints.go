package main

import (
	"fmt"
	"strconv"
	"strings"
)

// The texts of the constraints are those of AWS's messages (kinesalite's tests, seen on AWS). The
// service model says which member has which constraint.
const (
	mustNotBeNull = "Member must not be null"
	nameMustMatch = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
	keyMustMatch  = `Member must satisfy regular expression pattern: 0|([1-9]\d{0,38})`
	numberMust    = `Member must satisfy regular expression pattern: 0|([1-9]\d{0,128})`
	arnMustMatch  = `Member must satisfy regular expression pattern: arn:aws.*:kinesis:.*:\d{12}:` +
		`stream/\S+`
	resourceMust = `Member must satisfy regular expression pattern: arn:aws.*:kinesis:.*:\d{12}:` +
		`.*stream/\S+`
	consumerMust = `Member must satisfy regular expression pattern: ^(arn):aws.*:kinesis:.*:` +
		`\d{12}:.*stream\/[a-zA-Z0-9_.-]+\/consumer\/[a-zA-Z0-9_.-]+:[0-9]+`
)

func atLeast(n int) string {
	return "Member must have value greater than or equal to " + strconv.Itoa(n)
}

func atMost(n int) string {
	return "Member must have value less than or equal to " +
		strconv.Itoa(n)
}

func longer(n int) string {
	return "Member must have length greater than or equal to " + strconv.Itoa(n)
}

func shorter(n int) string {
	return "Member must have length less than or equal to " +
		strconv.Itoa(n)
}
func oneOf(v string) string { return "Member must satisfy enum value set: [" + v + "]" }

// violation is one broken constraint.
type violation struct{ value, path, constraint string }

func (v violation) String() string {
	value := "'" + v.value + "'"
	if v.value == "null" {
		value = v.value
	}
	return "Value " + value + " at '" + v.path + "' failed to satisfy constraint: " + v.constraint
}

// constraint is a request that breaks constraints, with the violations that the error lists.
type constraint struct {
	id, op     string
	in         object
	violations []violation
}

func constraintFacts() []fact {
	var all []fact
	for _, table := range [][]constraint{
		requiredConstraints(), nameConstraints(), rangeConstraints(), patternConstraints(),
		enumConstraints(), listConstraints(),
	} {
		for _, row := range table {
			all = append(all, row.fact())
		}
	}
	return all
}

func (row constraint) fact() fact {
	lines := make([]string, len(row.violations))
	paths := make([]string, len(row.violations))
	for i, v := range row.violations {
		lines[i], paths[i] = v.String(), v.path+" ("+v.constraint+")"
	}
	s := ""
	if len(lines) > 1 {
		s = "s"
	}
	text := fmt.Sprintf("%d validation error%s detected: %s", len(lines), s,
		strings.Join(lines, "; "))
	return fact{
		"constraints/" + row.id, row.op, "A ValidationException names " + strings.Join(paths,
			", ") + ".",
		inModel(row.op + "Input; the words from kinesalite's tests"), nothing, func(c *check) {
			in := row.in
			if in["StreamName"] == somewhere {
				in = in.with(object{"StreamName": c.absent()})
			}
			if row.op == createStream && in["StreamName"] == c.absent() {
				// An endpoint that accepts the request makes a stream, to be deleted at the end.
				_, a := c.create("constraint-"+row.id, in)
				c.isError(a, "ValidationException", text)
				return
			}
			c.refused(row.op, in, "ValidationException", text)
		},
	}
}

// somewhere is a placeholder for the name of an absent stream. Broken constraints are reported
// before an absent stream.
const somewhere = "(absent)"

func requiredConstraints() []constraint {
	missing := func(id, op string, in object, paths ...string) constraint {
		row := constraint{id: id + "-required", op: op, in: in}
		for _, path := range paths {
			row.violations = append(row.violations, violation{"null", path, mustNotBeNull})
		}
		return row
	}
	named := object{"StreamName": somewhere}
	return []constraint{
		missing("create-stream", createStream, object{}, "streamName"),
		missing("put-record", putRecord, named, "partitionKey", "data"),
		missing("put-records", putRecords, named, "records"),
		missing("put-records-entry", putRecords, named.with(object{"Records": []object{{}}}),
			"records.1.member.partitionKey", "records.1.member.data"),
		missing("get-records", getRecords, object{}, "shardIterator"),
		missing("get-shard-iterator", getShardIterator, named, "shardId", "shardIteratorType"),
		missing("split-shard", splitShard, named, "shardToSplit", "newStartingHashKey"),
		missing("merge-shards", mergeShards, named, "shardToMerge", "adjacentShardToMerge"),
		missing("update-shard-count", updateShardCount, named, "targetShardCount", "scalingType"),
		missing("add-tags", addTags, named, "tags"),
		missing("remove-tags", removeTags, named, "tagKeys"),
		missing("increase-retention", increaseRetention, named, "retentionPeriodHours"),
		missing("decrease-retention", decreaseRetention, named, "retentionPeriodHours"),
		missing("start-encryption", startEncryption, named, "encryptionType", "keyId"),
		missing("stop-encryption", stopEncryption, named, "encryptionType", "keyId"),
		missing("enable-monitoring", enableMonitoring, named, "shardLevelMetrics"),
		missing("register-consumer", registerConsumer, object{}, "streamARN", "consumerName"),
		missing("list-consumers", listConsumers, object{}, "streamARN"),
		missing("subscribe", subscribeToShard, object{}, "consumerARN", "shardId",
			"startingPosition"),
		missing("update-mode", updateStreamMode, object{}, "streamARN", "streamModeDetails"),
		missing("update-record-size", updateMaxRecordSize, object{}, "maxRecordSizeInKiB"),
		missing("update-account", updateAccount, object{}, "minimumThroughputBillingCommitment"),
		missing("update-account-status", updateAccount,
			object{"MinimumThroughputBillingCommitment": object{}},
			"minimumThroughputBillingCommitment.status"),
		missing("tag-resource", tagResource, object{}, "tags", "resourceARN"),
		missing("untag-resource", untagResource, object{}, "tagKeys", "resourceARN"),
		missing("get-policy", getPolicy, object{}, "resourceARN"),
		missing("put-policy", putPolicy, object{}, "resourceARN", "policy"),
		missing("shard-filter", listShards, named.with(object{"ShardFilter": object{}}),
			"shardFilter.type"),
		missing("update-warm-throughput", updateWarmThroughput, named, "warmThroughputMiBps"),
	}
}

func nameConstraints() []constraint {
	long := strings.Repeat("a", 129)
	return []constraint{
		{"stream-name-empty", deleteStream, object{"StreamName": ""}, []violation{
			{"", "streamName", nameMustMatch}, {"", "streamName", longer(1)},
		}},
		{"stream-name-long", deleteStream, object{"StreamName": long}, []violation{
			{long, "streamName", shorter(128)},
		}},
		{"stream-name-characters", describeStream, object{"StreamName": "a:b"}, []violation{
			{"a:b", "streamName", nameMustMatch},
		}},
		{"shard-id-long", getShardIterator, object{
			"StreamName": somewhere, "ShardId": long, "ShardIteratorType": "LATEST",
		}, []violation{{long, "shardId", shorter(128)}}},
		{
			"iterator-long", getRecords,
			object{"ShardIterator": strings.Repeat("a", 513)},
			[]violation{{strings.Repeat("a", 513), "shardIterator", shorter(512)}},
		},
		{
			"iterator-empty", getRecords,
			object{"ShardIterator": ""},
			[]violation{{"", "shardIterator", longer(1)}},
		},
		{"partition-key-empty", putRecord, object{
			"StreamName": somewhere, "PartitionKey": "", "Data": "",
		}, []violation{{"", "partitionKey", longer(1)}}},
		{"partition-key-long", putRecord, object{
			"StreamName": somewhere, "PartitionKey": strings.Repeat("a", 257), "Data": "",
		}, []violation{{strings.Repeat("a", 257), "partitionKey", shorter(256)}}},
		{"partition-key-long-entry", putRecords, object{
			"StreamName": somewhere, "Records": []object{
				{"PartitionKey": "a", "Data": ""}, {
					"PartitionKey": strings.Repeat("a", 257),
					"Data":         "",
				},
			},
		}, []violation{{strings.Repeat("a", 257), "records.2.member.partitionKey", shorter(256)}}},
		{"consumer-name-characters", registerConsumer, object{
			"StreamARN": "arn:aws:kinesis:us-east-1:000000000000:stream/x", "ConsumerName": "a b",
		}, []violation{{"a b", "consumerName", nameMustMatch}}},
	}
}

func rangeConstraints() []constraint {
	limit := func(id, op string, in object, path, constraint string, value int) constraint {
		return constraintOf(id, op, in, violation{strconv.Itoa(value), path, constraint})
	}
	named := object{"StreamName": somewhere}
	return []constraint{
		limit("shard-count-0", createStream, named.with(object{"ShardCount": 0}), "shardCount",
			atLeast(1), 0),
		limit("record-size-low", createStream, named.with(object{
			"ShardCount": 1, "MaxRecordSizeInKiB": 1023,
		}), "maxRecordSizeInKiB", atLeast(1024), 1023),
		limit("record-size-high", updateMaxRecordSize, object{
			"StreamARN":          "arn:aws:kinesis:us-east-1:000000000000:stream/x",
			"MaxRecordSizeInKiB": 10241,
		}, "maxRecordSizeInKiB", atMost(10240), 10241),
		limit("describe-limit-0", describeStream, named.with(object{"Limit": 0}), "limit",
			atLeast(1), 0),
		limit("describe-limit-high", describeStream, named.with(object{"Limit": 10001}), "limit",
			atMost(10000), 10001),
		limit("list-streams-limit", listStreams, object{"Limit": 10001}, "limit", atMost(10000),
			10001),
		limit("list-shards-results", listShards, named.with(object{"MaxResults": 10001}),
			"maxResults",
			atMost(10000), 10001),
		limit("get-records-limit", getRecords, object{"ShardIterator": "a", "Limit": 10001},
			"limit",
			atMost(10000), 10001),
		limit("list-tags-limit", listTagsForStream, named.with(object{"Limit": 51}), "limit",
			atMost(50),
			51),
		limit("target-shard-count-0", updateShardCount, scaleTo(somewhere, 0), "targetShardCount",
			atLeast(1), 0),
		limit("warm-throughput-negative", updateWarmThroughput,
			named.with(object{"WarmThroughputMiBps": -1}), "warmThroughputMiBps", atLeast(0), -1),
	}
}

func constraintOf(id, op string, in object, v ...violation) constraint {
	return constraint{id, op, in, v}
}

func patternConstraints() []constraint {
	put := object{"StreamName": somewhere, "PartitionKey": "a", "Data": ""}
	return []constraint{
		constraintOf("hash-key-pattern", putRecord, put.with(object{"ExplicitHashKey": "01"}),
			violation{"01", "explicitHashKey", keyMustMatch}),
		constraintOf("hash-key-empty", putRecord, put.with(object{"ExplicitHashKey": ""}),
			violation{"", "explicitHashKey", keyMustMatch}),
		constraintOf("ordering-pattern", putRecord,
			put.with(object{"SequenceNumberForOrdering": "x"}),
			violation{"x", "sequenceNumberForOrdering", numberMust}),
		constraintOf("starting-number-pattern", getShardIterator, object{
			"StreamName": somewhere, "ShardId": "s-0", "ShardIteratorType": "AT_SEQUENCE_NUMBER",
			"StartingSequenceNumber": "-1",
		}, violation{"-1", "startingSequenceNumber", numberMust}),
		constraintOf("new-hash-key-pattern", splitShard, object{
			"StreamName": somewhere, "ShardToSplit": "s-0", "NewStartingHashKey": "1e3",
		}, violation{"1e3", "newStartingHashKey", keyMustMatch}),
		constraintOf("stream-arn-pattern", describeStream, object{"StreamARN": "arn:x"},
			violation{"arn:x", "streamARN", arnMustMatch}),
		constraintOf("resource-arn-pattern", listTagsForResource, object{"ResourceARN": "arn:x"},
			violation{"arn:x", "resourceARN", resourceMust}),
		constraintOf("consumer-arn-pattern", describeConsumer, object{"ConsumerARN": "arn:x"},
			violation{"arn:x", "consumerARN", consumerMust}),
	}
}

func enumConstraints() []constraint {
	named := object{"StreamName": somewhere}
	types := "AFTER_SEQUENCE_NUMBER, LATEST, AT_TIMESTAMP, AT_SEQUENCE_NUMBER, TRIM_HORIZON"
	return []constraint{
		constraintOf("iterator-type-enum", getShardIterator, named.with(object{
			"ShardId": "s-0", "ShardIteratorType": "NEWEST",
		}), violation{"NEWEST", "shardIteratorType", oneOf(types)}),
		constraintOf("scaling-type-enum", updateShardCount,
			scaleTo(somewhere, 2).with(object{"ScalingType": "NONE"}),
			violation{"NONE", "scalingType", oneOf("UNIFORM_SCALING")}),
		constraintOf("stream-mode-enum", createStream, named.with(object{
			"StreamModeDetails": object{"StreamMode": "LATER"},
		}), violation{"LATER", "streamModeDetails.streamMode", oneOf("PROVISIONED, ON_DEMAND")}),
		constraintOf("shard-filter-enum", listShards, named.with(object{
			"ShardFilter": object{"Type": "ALL"},
		}), violation{"ALL", "shardFilter.type", oneOf("AFTER_SHARD_ID, AT_TRIM_HORIZON, " +
			"FROM_TRIM_HORIZON, AT_LATEST, AT_TIMESTAMP, FROM_TIMESTAMP")}),
		constraintOf("starting-position-enum", subscribeToShard, object{
			"ConsumerARN": "arn:aws:kinesis:us-east-1:000000000000:stream/x/consumer/c:1500000000",
			"ShardId":     "s-0", "StartingPosition": object{"Type": "NEWEST"},
		}, violation{"NEWEST", "startingPosition.type", oneOf(types)}),
		constraintOf("encryption-type-enum", startEncryption, named.with(object{
			"EncryptionType": "AES", "KeyId": "k",
		}), violation{"AES", "encryptionType", oneOf("NONE, KMS")}),
		constraintOf("commitment-enum", updateAccount, object{
			"MinimumThroughputBillingCommitment": object{"Status": "MAYBE"},
		}, violation{
			"MAYBE", "minimumThroughputBillingCommitment.status",
			oneOf("ENABLED, DISABLED"),
		}),
	}
}

// between is the text for the lengths of a list's or a map's members.
func between(low, high int) string { return "[" + shorter(high) + ", " + longer(low) + "]" }

func listConstraints() []constraint {
	named := object{"StreamName": somewhere}
	long := strings.Repeat("a", 129)
	lengths := "Member must satisfy constraint: " + between(1, 128)
	return []constraint{
		constraintOf("records-empty", putRecords, named.with(object{"Records": []object{}}),
			violation{"[]", "records", longer(1)}),
		constraintOf("tags-empty", addTags, named.with(object{"Tags": object{}}),
			violation{"{}", "tags", longer(1)}),
		constraintOf("tag-name-long", addTags, named.with(object{"Tags": object{long: "x"}}),
			violation{"{" + long + "=x}", "tags", "Map keys must satisfy constraint: " + between(1,
				128)}),
		constraintOf("tag-value-long", addTags, named.with(object{"Tags": object{"x": long +
			long}}),
			violation{"{x=" + long + long + "}", "tags", "Map value must satisfy constraint: " +
				between(0, 256)}),
		constraintOf("tag-keys-empty", removeTags, named.with(object{"TagKeys": []string{}}),
			violation{"[]", "tagKeys", longer(1)}),
		constraintOf("tag-key-long", removeTags, named.with(object{"TagKeys": []string{"a", long}}),
			violation{"[a, " + long + "]", "tagKeys", lengths}),
		constraintOf("metrics-empty", enableMonitoring,
			named.with(object{"ShardLevelMetrics": []string{}}),
			violation{"[]", "shardLevelMetrics", longer(1)}),
	}
}
