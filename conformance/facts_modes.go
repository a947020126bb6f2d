package main

const (
	updateStreamMode     = "UpdateStreamMode"
	updateWarmThroughput = "UpdateStreamWarmThroughput"
)

// demandScene is an on-demand stream that was made provisioned.
type demandScene struct {
	name, arn           string
	summary             object
	scale, split, merge *answer
	limits              object // DescribeLimits while it is on-demand
	warm                *answer
	mode                *answer // of UpdateStreamMode
	updating, after     object  // summaries
}

func (c *check) demand() demandScene {
	return stage(c, "demand", func(c *check) (s demandScene) {
		s.name = c.stream("demand", object{"StreamModeDetails": object{"StreamMode": "ON_DEMAND"}})
		s.summary = c.summary(s.name)
		s.arn = s.summary.text("StreamARN")
		s.limits = c.ok(describeLimits, object{})
		s.scale = c.call(updateShardCount, scaleTo(s.name, 8))
		s.split = c.call(splitShard, object{
			"StreamName": s.name, "ShardToSplit": shardID(0), "NewStartingHashKey": "7",
		})
		s.merge = c.call(mergeShards, object{
			"StreamName": s.name, "ShardToMerge": shardID(0), "AdjacentShardToMerge": shardID(1),
		})
		s.warm = c.call(updateWarmThroughput, object{
			"StreamName":          s.name,
			"WarmThroughputMiBps": 8,
		})
		c.active(s.name)
		s.mode = c.call(updateStreamMode, object{
			"StreamARN": s.arn, "StreamModeDetails": object{"StreamMode": "PROVISIONED"},
		})
		c.succeeded(updateStreamMode, s.mode)
		s.updating = c.summary(s.name)
		c.active(s.name)
		s.after = c.summary(s.name)
		return s
	})
}

func modeFacts() []fact {
	return []fact{
		{
			"update-stream-mode/empty-answer", updateStreamMode,
			"The answer is 200 with an empty body.",
			inModel(updateStreamMode), nothing, func(c *check) {
				c.equal("body", string(c.demand().mode.body), "")
			},
		},
		{
			"update-stream-mode/updating", updateStreamMode, "Right after, the stream is UPDATING.",
			onPage("Developer Guide: Switch between capacity modes"), nothing, func(c *check) {
				if c.demand().updating.text("StreamStatus") == "ACTIVE" {
					c.skip("the stream was ACTIVE before it was looked at")
				}
				c.equal("StreamStatus", c.demand().updating.text("StreamStatus"), "UPDATING")
			},
		},
		{
			"update-stream-mode/shards-stay", updateStreamMode,
			"A stream that becomes provisioned keeps its shards.",
			onPage("Developer Guide: Switch between capacity modes"), nothing, func(c *check) {
				c.equal("mode", c.demand().after.text("StreamModeDetails.StreamMode"),
					"PROVISIONED")
				c.equal("OpenShardCount", c.demand().after.at("OpenShardCount"),
					c.demand().summary.at("OpenShardCount"))
			},
		},
		{
			"split-shard/on-demand", splitShard, "An on-demand stream is refused with " +
				"ValidationException.",
			onPage(splitShard + ", ValidationException"), nothing, func(c *check) {
				c.isError(c.demand().split, "ValidationException", "")
			},
		},
		{
			"merge-shards/on-demand", mergeShards,
			"An on-demand stream is refused with ValidationException.",
			onPage(mergeShards + ", ValidationException"), nothing, func(c *check) {
				c.isError(c.demand().merge, "ValidationException", "")
			},
		},
		{
			"update-stream-warm-throughput/no-commitment", updateWarmThroughput,
			"Without a billing commitment of the account it is refused with ValidationException " +
				"or InvalidArgumentException.",
			onPage(updateWarmThroughput), nothing, func(c *check) {
				if c.billing() != "DISABLED" {
					c.skip("the account has a billing commitment")
				}
				c.isRefusal(c.demand().warm)
			},
		},
		{
			"update-stream-warm-throughput/provisioned", updateWarmThroughput,
			"A provisioned stream is refused with ValidationException or InvalidArgumentException.",
			onPage(updateWarmThroughput), nothing, func(c *check) {
				c.isRefusal(c.call(updateWarmThroughput, object{
					"StreamName": c.main().name, "WarmThroughputMiBps": 8,
				}))
			},
		},
	}
}
