package main

import "fmt"

const updateShardCount = "UpdateShardCount"

// countScene is a stream that UpdateShardCount scales from two shards to four.
type countScene struct {
	name            string
	tooMany, answer *answer
	updating, after object
	tooFew, twice   *answer
}

func scaleTo(stream string, target int) object {
	return object{
		"StreamName": stream, "TargetShardCount": target, "ScalingType": "UNIFORM_SCALING",
	}
}

func (c *check) scaled() countScene {
	return stage(c, "count", func(c *check) (s countScene) {
		s.name = c.stream("count", object{"ShardCount": 2})
		s.answer = c.call(updateShardCount, scaleTo(s.name, 4))
		c.succeeded(updateShardCount, s.answer)
		s.updating = c.describe(s.name)
		s.twice = c.call(updateShardCount, scaleTo(s.name, 3))
		c.active(s.name)
		s.after = c.describe(s.name)
		s.tooFew = c.call(updateShardCount, scaleTo(s.name, 1))
		s.tooMany = c.call(updateShardCount, scaleTo(s.name, 9))
		return s
	})
}

func shardCountFacts() []fact {
	return []fact{
		{
			"update-shard-count/members", updateShardCount,
			"The answer has StreamName, StreamARN, CurrentShardCount and TargetShardCount.",
			onPage(updateShardCount), nothing, func(c *check) {
				a := c.scaled().answer.value
				c.members(a, "StreamName", "StreamARN", "CurrentShardCount", "TargetShardCount")
				c.equal("CurrentShardCount", a.at("CurrentShardCount"), 2)
				c.equal("TargetShardCount", a.at("TargetShardCount"), 4)
			},
		},
		{
			"update-shard-count/updating", updateShardCount,
			"Right after, the stream is UPDATING, and asking again is refused.",
			onPage(updateShardCount), nothing, func(c *check) {
				if c.scaled().updating.text("StreamStatus") == "ACTIVE" {
					c.skip("the stream was ACTIVE before it was looked at")
				}
				c.equal("StreamStatus", c.scaled().updating.text("StreamStatus"), "UPDATING")
				c.isError(c.scaled().twice, "ResourceInUseException", "Stream "+c.scaled().name+
					" under account "+c.main().account+" not ACTIVE, instead in state UPDATING")
			},
		},
		{
			"update-shard-count/doubled", updateShardCount,
			"Doubling splits every shard in the middle: the open shards tile the key space evenly.",
			onPage(updateShardCount), nothing, func(c *check) {
				starts := map[string]bool{}
				for _, shard := range c.scaled().after.list("Shards") {
					if shard.at("SequenceNumberRange.EndingSequenceNumber") == nil {
						starts[shard.text("HashKeyRange.StartingHashKey")] = true
					}
				}
				c.equal("starts of open shards", starts, map[string]bool{
					"0": true, "85070591730234615865843651857942052864": true, middle: true,
					"255211775190703847597530955573826158592": true,
				})
			},
		},
	}
}

// scaled returns the pattern of a refusal. Its comma is optional, since the sources differ in it.
func scaled(how string, from, to int) string {
	return fmt.Sprintf(`^UpdateShardCount cannot scale %s your current open shard count\. `+
		`Current open shard count: %d,? Target shard count: %d$`, how, from, to)
}

// shardCountRefusals are about counts that are refused.
func shardCountRefusals() []fact {
	return []fact{
		{
			"update-shard-count/more-than-double", updateShardCount,
			"More than double is refused with LimitExceededException.",
			onPage(updateShardCount + "; the text from kinesalite pull request 48"), nothing,
			func(c *check) {
				c.isError(c.scaled().tooMany, "LimitExceededException", "")
				c.matches("message", c.scaled().tooMany.message(),
					scaled("up over double", 4, 9))
			},
		},
		{
			"update-shard-count/less-than-half", updateShardCount,
			"Less than half is refused with LimitExceededException.",
			onPage(updateShardCount + "; the text from kinesalite pull request 48"), nothing,
			func(c *check) {
				c.isError(c.scaled().tooFew, "LimitExceededException", "")
				c.matches("message", c.scaled().tooFew.message(),
					scaled("down below half", 4, 1))
			},
		},
		{
			"update-shard-count/on-demand", updateShardCount,
			"An on-demand stream is refused with ValidationException.",
			onPage(updateShardCount + ", ValidationException"), nothing, func(c *check) {
				c.isError(c.demand().scale, "ValidationException", "")
			},
		},
	}
}
