package main

import "strings"

const splitShard = "SplitShard"

func splitFacts() []fact {
	return append(splitRefusals(), append(splitStates(), splitResults()...)...)
}

func splitStates() []fact {
	return []fact{
		{
			"split-shard/empty-answer", splitShard, "The answer is 200 with an empty body.",
			kinesalite("splitShard"), nothing, func(c *check) {
				c.equal("body", string(c.split().split.body), "")
			},
		},
		{
			"split-shard/updating", splitShard,
			"Right after, the stream is UPDATING and its shards are as before.",
			kinesalite("splitShard"), nothing, func(c *check) {
				d := c.split().updating
				if d.text("StreamStatus") == "ACTIVE" {
					c.skip("the stream was ACTIVE before it was looked at")
				}
				c.equal("StreamStatus", d.text("StreamStatus"), "UPDATING")
				c.equal("shards", len(d.list("Shards")), 1)
				c.want(d.at("Shards.0.SequenceNumberRange.EndingSequenceNumber") == nil,
					"an open shard",
					d.at("Shards.0"))
			},
		},
		{
			"split-shard/while-updating", splitShard,
			"A stream that is not ACTIVE is refused with ResourceInUseException.",
			kinesalite("splitShard"), nothing, func(c *check) {
				if c.split().updating.text("StreamStatus") == "ACTIVE" {
					c.skip("the stream was ACTIVE before it was asked again")
				}
				c.isError(c.split().twice, "ResourceInUseException", "Stream "+c.split().name+
					" under account "+c.main().account+" not ACTIVE, instead in state UPDATING")
			},
		},
		{
			"split-shard/put-while-updating", putRecord,
			"While the stream is UPDATING, records are accepted and go to the shard that is " +
				"being split.",
			kinesalite("splitShard"), nothing, func(c *check) {
				a := c.succeeded(putRecord, c.split().during)
				if c.split().updating.text("StreamStatus") == "ACTIVE" {
					c.skip("the stream was ACTIVE before the record was put")
				}
				c.equal("ShardId", a.text("ShardId"), shardID(0))
			},
		},
	}
}

func splitResults() []fact {
	return []fact{
		{
			"split-shard/children", splitShard,
			"Two children with the parent's id share its range: the second one begins with " +
				"NewStartingHashKey.",
			kinesalite("splitShard"), nothing, func(c *check) {
				shards := c.split().after.list("Shards")
				c.equal("shards", len(shards), 3)
				for i, want := range [][2]string{
					{"0", "170141183460469231731687303715884105727"}, {middle, maxHashKey},
				} {
					child := shards[i+1]
					c.members(child, "ShardId", "ParentShardId", "HashKeyRange",
						"SequenceNumberRange")
					c.equal("ShardId", child.text("ShardId"), shardID(i+1))
					c.equal("ParentShardId", child.text("ParentShardId"), shardID(0))
					c.equal("start", child.text("HashKeyRange.StartingHashKey"), want[0])
					c.equal("end", child.text("HashKeyRange.EndingHashKey"), want[1])
				}
			},
		},
		{
			"split-shard/parent-closed", splitShard,
			"The parent has an EndingSequenceNumber of its own creation time, with the largest " +
				"counter.",
			kinesalite("splitShard"), nothing, func(c *check) {
				numbers := c.split().after.list("Shards")[0]
				start := numbers.text("SequenceNumberRange.StartingSequenceNumber")
				end := numbers.text("SequenceNumberRange.EndingSequenceNumber")
				c.matches("EndingSequenceNumber", end, `^\d{56}$`)
				from, to := bigNumber(start).Text(16), bigNumber(end).Text(16)
				c.equal("creation time", to[:10], from[:10])
				c.equal("counter", to[11:27], "7fffffffffffffff")
			},
		},
		{
			"split-shard/children-above", splitShard,
			"The children's StartingSequenceNumber is above all of the parent's.",
			kinesalite("splitShard"), nothing, func(c *check) { c.climbs(c.split().after) },
		},
		{
			"split-shard/quick-resharding", splitShard,
			"The numbers of a child that is split at once are below those of its children, too.",
			guess("the order of readers needs it; no report of a trial within a second was found"),
			nothing, func(c *check) { c.climbs(c.split().final) },
		},
		{
			"split-shard/routing", putRecord, "Records go to the open child of their range.",
			onPage(splitShard), nothing, func(c *check) {
				for i, put := range c.split().children {
					c.equal("ShardId", put.text("ShardId"), shardID(i+1))
				}
			},
		},
		{
			"split-shard/open-count", describeSummary, "OpenShardCount does not count the closed " +
				"shard.",
			onPage("StreamDescriptionSummary"), nothing, func(c *check) {
				c.equal("OpenShardCount", c.split().summary.at("OpenShardCount"), 2)
			},
		},
	}
}

// climbs checks that every child's numbers begin above its parents' end.
func (c *check) climbs(description object) {
	ends := map[string]string{}
	for _, shard := range description.list("Shards") {
		ends[shard.text("ShardId")] = shard.text("SequenceNumberRange.EndingSequenceNumber")
	}
	for _, shard := range description.list("Shards") {
		start := shard.text("SequenceNumberRange.StartingSequenceNumber")
		for _, parent := range []string{"ParentShardId", "AdjacentParentShardId"} {
			end := ends[shard.text(parent)]
			c.want(end == "" || bigNumber(start).Cmp(bigNumber(end)) > 0, "more than "+end, start)
		}
	}
}

// borders is a stream of three shards for calls that must be refused. An endpoint that accepts one
// thus changes no other fact's stream.
func (c *check) borders() string {
	return stage(c, "borders", func(c *check) string {
		return c.stream("borders", object{"ShardCount": 3})
	})
}

// impossibleShards are ids that no shard can have: numbers above 2^31 - 1, and no numbers.
var impossibleShards = []string{"2147483648", "shardId-002147483648", "ABKLFD8", "2.14E4"}

func splitRefusals() []fact {
	outside := func(id, says string, shard int, hashKey string) fact {
		return fact{
			"split-shard/" + id, splitShard, says, kinesalite("splitShard"), nothing,
			func(c *check) {
				c.refused(splitShard, object{
					"StreamName": c.borders(), "ShardToSplit": shardID(shard),
					"NewStartingHashKey": hashKey,
				}, "InvalidArgumentException", "NewStartingHashKey "+hashKey+" used in "+
					"SplitShard() on "+
					"shard "+shardID(shard)+" in "+c.under(c.borders())+" is not both greater "+
					"than one "+
					"plus the shard's StartingHashKey "+thirds[shard][0]+" and less than the "+
					"shard's "+
					"EndingHashKey "+thirds[shard][1]+".")
			},
		}
	}
	noShard := func(id, says, shard, named string) fact {
		return fact{
			"split-shard/" + id, splitShard, says, kinesalite("splitShard"), nothing,
			func(c *check) {
				c.refused(splitShard, object{
					"StreamName": c.main().name, "ShardToSplit": shard, "NewStartingHashKey": "0",
				}, "ResourceNotFoundException", "Could not find shard "+named+" in "+
					c.under(c.main().name)+".")
			},
		}
	}
	return []fact{
		outside("too-low", "NewStartingHashKey must be above the shard's StartingHashKey plus one.",
			0, "1"),
		outside("too-high", "NewStartingHashKey must be below the shard's end.", 0, thirds[0][1]),
		outside("beyond", "NewStartingHashKey may not lie beyond all keys.", 2,
			strings.Repeat("9", 39)),
		noShard("absent-shard", "A shard that the stream does not have cannot be found.",
			"shardId-5",
			shardID(5)),
		noShard("no-shard-number", "A shard id without a number cannot be found.", "ABKLFD8",
			"ABKLFD8"),
		{
			"split-shard/impossible-shard", splitShard,
			"A shard id that no shard can have is refused before an unknown stream.",
			kinesalite("splitShard"), nothing, func(c *check) {
				for _, id := range impossibleShards {
					c.refused(splitShard, object{
						"StreamName": c.absent(), "ShardToSplit": id, "NewStartingHashKey": "0",
					}, "ResourceNotFoundException", "Could not find shard "+id+" in "+
						c.under(c.absent())+".")
				}
				c.refused(splitShard, object{
					"StreamName": c.absent(), "ShardToSplit": "2147483647",
					"NewStartingHashKey": "0",
				}, "ResourceNotFoundException", c.notFound(c.absent()))
			},
		},
		{
			"split-shard/closed", splitShard, "A closed shard is refused.",
			guess("the reference says it of neither split nor merge"), nothing, func(c *check) {
				a := c.call(splitShard, object{
					"StreamName": c.split().name, "ShardToSplit": shardID(0),
					"NewStartingHashKey": "7",
				})
				c.want(a.status == 400, "400", a.String())
			},
		},
	}
}
