package main

import "math/big"

const createStream = "CreateStream"

func createFacts() []fact {
	return []fact{
		{
			"create-stream/empty-answer", createStream, "The answer is 200 with an empty body.",
			kinesalite("createStream"), nothing, func(c *check) {
				created := c.main().created
				c.want(created.status == 200 && len(created.body) == 0, "200, empty body",
					created.String())
			},
		},
		{
			"create-stream/creating", createStream,
			"Right after, the stream is CREATING and DescribeStream lists no shards.",
			kinesalite("createStream"), nothing, func(c *check) {
				early := c.main().early
				if early.text("StreamStatus") == "ACTIVE" {
					c.skip("the stream was ACTIVE before it was looked at")
				}
				c.equal("StreamStatus", early.text("StreamStatus"), "CREATING")
				c.equal("shards", len(early.list("Shards")), 0)
				c.equal("HasMoreShards", early.at("HasMoreShards"), false)
			},
		},
		{
			"create-stream/exists", createStream,
			"A name that is taken is refused with ResourceInUseException.",
			kinesalite("createStream"), nothing, func(c *check) {
				c.isError(c.main().again, "ResourceInUseException", "Stream "+c.main().name+
					" under account "+c.main().account+" already exists.")
			},
		},
		{
			"create-stream/ranges", createStream,
			"Shard i of N gets the hash keys from i*floor(2^128/N), and the last one ends at " +
				"2^128-1.",
			kinesalite("createStream"), nothing, func(c *check) {
				for i, shard := range c.main().description.list("Shards") {
					c.equal("start", shard.text("HashKeyRange.StartingHashKey"), thirds[i][0])
					c.equal("end", shard.text("HashKeyRange.EndingHashKey"), thirds[i][1])
				}
			},
		},
	}
}

// createShards are about the shards of a new stream, and its ARN.
func createShards() []fact {
	return []fact{
		{
			"create-stream/shard-ids", createStream,
			"Shards are named shardId- and twelve digits, from 0.",
			kinesalite("createStream"), nothing, func(c *check) {
				shards := c.main().description.list("Shards")
				c.equal("shards", len(shards), 3)
				for i, shard := range shards {
					c.equal("ShardId", shard.text("ShardId"), shardID(i))
				}
			},
		},
		{
			"create-stream/sequence-numbers", createStream,
			"A shard's StartingSequenceNumber has 56 digits, and neighbours differ by the shard " +
				"index alone.",
			kinesalite("createStream"), nothing, func(c *check) {
				var last *big.Int
				for _, shard := range c.main().description.list("Shards") {
					start := shard.text("SequenceNumberRange.StartingSequenceNumber")
					c.matches("StartingSequenceNumber", start, `^\d{56}$`)
					number := bigNumber(start)
					if last != nil {
						c.equal("step", new(big.Int).Sub(number, last).String(),
							"22300745198530623141535718272648361505980432")
					}
					last = number
				}
			},
		},
		{
			"create-stream/arn", createStream,
			"The stream's ARN is arn:aws:kinesis:REGION:ACCOUNT:stream/NAME.",
			onPage("StreamDescription"), nothing, func(c *check) {
				c.matches("StreamARN", c.main().arn,
					`^arn:aws[a-z-]*:kinesis:`+c.region+`:\d{12}:stream/`+c.main().name+`$`)
			},
		},
	}
}

// createMembers are about the members of the request.
func createMembers() []fact {
	return []fact{
		{
			"create-stream/on-demand", createStream,
			"An on-demand stream begins with four shards.",
			onPage("Developer Guide: Choose the data stream capacity mode"), nothing,
			func(c *check) {
				c.equal("OpenShardCount", c.demand().summary.at("OpenShardCount"), 4)
				c.equal("mode", c.demand().summary.text("StreamModeDetails.StreamMode"),
					"ON_DEMAND")
			},
		},
		{
			"create-stream/no-shard-count", createStream,
			"Without ShardCount and mode a stream has four shards.",
			localstack("test_create_stream_without_shard_count"), nothing, func(c *check) {
				c.equal("shards", len(c.describe(c.stream("bare", object{})).list("Shards")), 4)
			},
		},
		{
			"create-stream/tags", createStream, "Tags may be given at once.",
			onPage(createStream), nothing, func(c *check) {
				c.equal("tags", c.settings().born, object{"born": "yes", "empty": ""})
			},
		},
		{
			"create-stream/max-record-size", createStream,
			"MaxRecordSizeInKiB sets the largest record at once.",
			onPage(createStream), nothing, func(c *check) {
				c.equal("MaxRecordSizeInKiB", c.settings().first.at("MaxRecordSizeInKiB"), 2048)
			},
		},
		{
			"create-stream/provisioned-no-warm-throughput", createStream,
			"A provisioned stream takes no WarmThroughputMiBps.",
			guess("the reference has warm throughput for on-demand streams alone, without an " +
				"error"),
			nothing, func(c *check) {
				_, a := c.create("warm", object{
					"ShardCount": 1, "WarmThroughputMiBps": 1,
					"StreamModeDetails": object{"StreamMode": "PROVISIONED"},
				})
				c.isRefusal(a)
			},
		},
	}
}

// shardID is the id of the shard of that index.
func shardID(index int) string {
	digits := "000000000000" + show(index)
	return "shardId-" + digits[len(digits)-12:]
}
