package main

// missingFacts are about absent streams, consumers and resources, with one fact for each operation
// that names one.
func missingFacts() []fact { return append(missingStreams(), missingOthers()...) }

// notThere returns a fact about an absent resource. The model documents the error without a text.
func notThere(id, op string, in func(c *check) object) fact {
	return fact{
		id + "/absent", op, "An absent resource is refused with ResourceNotFoundException.",
		inModel(op + ": ResourceNotFoundException"), nothing, func(c *check) {
			c.refused(op, in(c), "ResourceNotFoundException", "")
		},
	}
}

// missingStreams are the facts with an error text that was seen on AWS.
func missingStreams() []fact {
	known := func(id, op, test string, members object) fact {
		return fact{
			id + "/absent", op, "An absent stream is refused with ResourceNotFoundException.",
			kinesalite(test), nothing, func(c *check) {
				in := members.with(object{"StreamName": c.absent()})
				c.refused(op, in, "ResourceNotFoundException", c.notFound(c.absent()))
			},
		}
	}
	return []fact{
		known("add-tags-to-stream", addTags, "addTagsToStream", object{"Tags": object{"a": "b"}}),
		known("decrease-retention", decreaseRetention, "decreaseStreamRetentionPeriod",
			object{"RetentionPeriodHours": 25}),
		known("delete-stream", deleteStream, "deleteStream", nil),
		known("describe-stream", describeStream, "describeStream", nil),
		known("describe-stream-summary", describeSummary, "describeStreamSummary", nil),
		known("increase-retention", increaseRetention, "increaseStreamRetentionPeriod",
			object{"RetentionPeriodHours": 25}),
		known("list-shards", listShards, "listShards", nil),
		known("list-tags-for-stream", listTagsForStream, "listTagsForStream", nil),
		known("merge-shards", mergeShards, "mergeShards",
			object{"ShardToMerge": "a-0", "AdjacentShardToMerge": "a-1"}),
		known("put-record", putRecord, "putRecord", object{"PartitionKey": "a", "Data": ""}),
		known("put-records", putRecords, "putRecords",
			object{"Records": []object{{"PartitionKey": "a", "Data": ""}}}),
		known("remove-tags-from-stream", removeTags, "removeTagsFromStream",
			object{"TagKeys": []string{";"}}),
		known("split-shard", splitShard, "splitShard",
			object{"ShardToSplit": "a-0", "NewStartingHashKey": "0"}),
	}
}

func missingOthers() []fact {
	byName := func(id, op string, members object) fact {
		return notThere(id, op, func(c *check) object {
			return members.with(object{"StreamName": c.absent()})
		})
	}
	byARN := func(id, op, member string, members object) fact {
		return notThere(id, op, func(c *check) object {
			return members.with(object{member: c.absentARN()})
		})
	}
	consumer := func(c *check) string { return c.absentARN() + "/consumer/nobody:1500000000" }
	metrics := object{"ShardLevelMetrics": []string{"ALL"}}
	key := object{"EncryptionType": "KMS", "KeyId": managedKey}
	return []fact{
		byName("update-shard-count", updateShardCount, scaleTo("", 2)),
		byName("enable-enhanced-monitoring", enableMonitoring, metrics),
		byName("disable-enhanced-monitoring", disableMonitoring, metrics),
		byName("start-stream-encryption", startEncryption, key),
		byName("stop-stream-encryption", stopEncryption, key),
		byName("update-stream-warm-throughput", updateWarmThroughput,
			object{"WarmThroughputMiBps": 1}),
		byARN("update-max-record-size", updateMaxRecordSize, "StreamARN",
			object{"MaxRecordSizeInKiB": 2048}),
		byARN("update-stream-mode", updateStreamMode, "StreamARN",
			object{"StreamModeDetails": object{"StreamMode": "PROVISIONED"}}),
		byARN("list-stream-consumers", listConsumers, "StreamARN", nil),
		byARN("register-stream-consumer", registerConsumer, "StreamARN",
			object{"ConsumerName": "c"}),
		byARN("tag-resource", tagResource, "ResourceARN", object{"Tags": object{"a": "b"}}),
		byARN("untag-resource", untagResource, "ResourceARN", object{"TagKeys": []string{"a"}}),
		byARN("list-tags-for-resource", listTagsForResource, "ResourceARN", nil),
		byARN("get-resource-policy", getPolicy, "ResourceARN", nil),
		byARN("put-resource-policy", putPolicy, "ResourceARN",
			object{"Policy": `{"Version":"2012-10-17","Statement":[]}`}),
		byARN("delete-resource-policy", deletePolicy, "ResourceARN", nil),
		notThere("describe-stream-consumer", describeConsumer, func(c *check) object {
			return object{"ConsumerARN": consumer(c)}
		}),
		notThere("deregister-stream-consumer", deregisterConsumer, func(c *check) object {
			return object{"ConsumerARN": consumer(c)}
		}),
		notThere("subscribe-to-shard", subscribeToShard, func(c *check) object {
			return c.position(consumer(c), object{"Type": "LATEST"})
		}),
	}
}
