package main

import "time"

const (
	describeStream  = "DescribeStream"
	describeSummary = "DescribeStreamSummary"
)

func describeFacts() []fact {
	return append(describeStreamFacts(), describeSummaryFacts()...)
}

func describeStreamFacts() []fact {
	return []fact{
		{
			"describe-stream/members", describeStream,
			"A StreamDescription has all that the model requires, and mode and encryption.",
			inModel("StreamDescription"), nothing, func(c *check) {
				c.contains(c.main().description, "StreamName", "StreamARN", "StreamStatus",
					"Shards",
					"HasMoreShards", "RetentionPeriodHours", "StreamCreationTimestamp",
					"EnhancedMonitoring", "StreamModeDetails", "EncryptionType")
			},
		},
		{
			"describe-stream/defaults", describeStream,
			"A new stream is provisioned, unencrypted, unmonitored and keeps records for 24 hours.",
			onPage("StreamDescription, CreateStream"), nothing, func(c *check) {
				d := c.main().description
				c.equal("RetentionPeriodHours", d.at("RetentionPeriodHours"), 24)
				c.equal("EncryptionType", d.text("EncryptionType"), "NONE")
				c.equal("EnhancedMonitoring", d.at("EnhancedMonitoring"),
					[]object{{"ShardLevelMetrics": []string{}}})
				c.equal("StreamMode", d.text("StreamModeDetails.StreamMode"), "PROVISIONED")
			},
		},
		{
			"describe-stream/no-key", describeStream, "An unencrypted stream has no KeyId.",
			kinesalite("describeStreamSummary"), nothing, func(c *check) {
				c.want(!c.main().description.has("KeyId"), "no KeyId",
					c.main().description.at("KeyId"))
			},
		},
		{
			"describe-stream/open-shard", describeStream,
			"An open shard has no EndingSequenceNumber, and the first shards have no parents.",
			kinesalite("describeStream"), nothing, func(c *check) {
				for _, shard := range c.main().description.list("Shards") {
					c.members(shard, "ShardId", "HashKeyRange", "SequenceNumberRange")
					sequence, _ := shard.at("SequenceNumberRange").(map[string]any)
					c.members(sequence, "StartingSequenceNumber")
				}
			},
		},
	}
}

// describeStreamCalls are about the request's members and its errors.
func describeStreamCalls() []fact {
	return []fact{
		{
			"describe-stream/limit", describeStream,
			"Limit cuts the list of shards, and HasMoreShards says so.",
			onPage(describeStream), nothing, func(c *check) {
				in := object{"StreamName": c.main().name, "Limit": 2}
				first := c.ok(describeStream, in)
				c.equal("shards", len(first.list("StreamDescription.Shards")), 2)
				c.equal("HasMoreShards", first.at("StreamDescription.HasMoreShards"), true)
				in["ExclusiveStartShardId"] = shardID(1)
				rest := c.ok(describeStream, in)
				c.equal("the rest", len(rest.list("StreamDescription.Shards")), 1)
				c.equal("its id", rest.text("StreamDescription.Shards.0.ShardId"), shardID(2))
				c.equal("HasMoreShards", rest.at("StreamDescription.HasMoreShards"), false)
			},
		},
		{
			"describe-stream/by-arn", describeStream,
			"A stream may be named by StreamARN instead of StreamName.",
			onPage(describeStream), nothing, func(c *check) {
				d := c.ok(describeStream, object{"StreamARN": c.main().arn})
				c.equal("StreamName", d.text("StreamDescription.StreamName"), c.main().name)
			},
		},
		{
			"describe-stream/by-name-and-arn", describeStream,
			"A stream may be named by StreamName and StreamARN at once.",
			onPage(describeStream), nothing, func(c *check) {
				c.ok(describeStream, object{"StreamName": c.main().name, "StreamARN": c.main().arn})
			},
		},
		{
			"describe-stream/unnamed", describeStream,
			"A request that names no stream is refused with InvalidArgumentException.",
			guess("the reference wants one of StreamName and StreamARN, and does not name the " +
				"error"),
			nothing, func(c *check) {
				c.refused(describeStream, object{}, "InvalidArgumentException", "")
			},
		},
	}
}

func describeSummaryFacts() []fact {
	return []fact{
		{
			"describe-stream-summary/members", describeSummary,
			"A StreamDescriptionSummary has all that the model requires, and mode, encryption, " +
				"consumers and the record size.",
			inModel("StreamDescriptionSummary"), nothing, func(c *check) {
				c.contains(c.main().summary, "StreamName", "StreamARN", "StreamStatus",
					"RetentionPeriodHours", "StreamCreationTimestamp", "EnhancedMonitoring",
					"OpenShardCount", "StreamModeDetails", "EncryptionType", "ConsumerCount",
					"MaxRecordSizeInKiB")
			},
		},
		{
			"describe-stream-summary/counts", describeSummary,
			"The summary has the numbers of open shards and of consumers.",
			onPage("StreamDescriptionSummary"), nothing, func(c *check) {
				c.equal("OpenShardCount", c.main().summary.at("OpenShardCount"), 3)
				c.equal("ConsumerCount", c.main().summary.at("ConsumerCount"), 0)
			},
		},
		{
			"describe-stream-summary/record-size", describeSummary,
			"A record may have 1024 KiB unless the stream has another limit.",
			onPage("Developer Guide: Quotas and limits"), nothing, func(c *check) {
				c.equal("MaxRecordSizeInKiB", c.main().summary.at("MaxRecordSizeInKiB"), 1024)
			},
		},
		{
			"describe-stream-summary/no-shards", describeSummary, "The summary lists no shards.",
			onPage(describeSummary), nothing, func(c *check) {
				c.want(!c.main().summary.has("Shards"), "no Shards", c.main().summary.at("Shards"))
			},
		},
		{
			"describe-stream-summary/time", describeSummary,
			"A time in JSON is a number of seconds since 1970.",
			kinesalite("describeStreamSummary"), nothing, func(c *check) {
				created, ok := c.main().summary.number("StreamCreationTimestamp")
				now := float64(time.Now().Unix())
				c.want(ok && created > now-3600 && created < now+60, "seconds of the last hour",
					c.main().summary.at("StreamCreationTimestamp"))
			},
		},
	}
}
