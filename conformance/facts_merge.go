package main

const mergeShards = "MergeShards"

// mergeScene is a stream of three shards; its first two were merged.
type mergeScene struct {
	name          string
	merge, twice  *answer
	updating      object
	after         object
	put           object // into the child
	endOfAdjacent object // the last GetRecords answer of the adjacent parent
}

func (c *check) merged() mergeScene {
	return stage(c, "merge", func(c *check) (s mergeScene) {
		s.name = c.stream("merge", object{"ShardCount": 3})
		s.merge = c.call(mergeShards, object{
			"StreamName": s.name, "ShardToMerge": shardID(0), "AdjacentShardToMerge": shardID(1),
		})
		c.succeeded(mergeShards, s.merge)
		s.updating = c.describe(s.name)
		s.twice = c.call(mergeShards, object{
			"StreamName": s.name, "ShardToMerge": shardID(1), "AdjacentShardToMerge": shardID(2),
		})
		c.active(s.name)
		s.after = c.describe(s.name)
		c.eventually("records go to the child", func() bool {
			s.put = c.ok(putRecord, object{
				"StreamName": s.name, "PartitionKey": "p", "Data": "",
				"ExplicitHashKey": thirds[1][0],
			})
			return s.put.text("ShardId") != shardID(1)
		})
		iterator := c.iterator(s.name, 1, object{"ShardIteratorType": "TRIM_HORIZON"})
		c.eventually("the adjacent parent's end comes", func() bool {
			s.endOfAdjacent = c.ok(getRecords, object{"ShardIterator": iterator})
			iterator = s.endOfAdjacent.text("NextShardIterator")
			return iterator == ""
		})
		return s
	})
}

func mergeFacts() []fact {
	return append(mergeRefusals(), []fact{
		{
			"merge-shards/empty-answer", mergeShards, "The answer is 200 with an empty body.",
			kinesalite("mergeShards"), nothing, func(c *check) {
				c.equal("body", string(c.merged().merge.body), "")
			},
		},
		{
			"merge-shards/updating", mergeShards,
			"Right after, the stream is UPDATING, its shards are as before, and another merge is " +
				"refused.",
			kinesalite("mergeShards"), nothing, func(c *check) {
				d := c.merged().updating
				if d.text("StreamStatus") == "ACTIVE" {
					c.skip("the stream was ACTIVE before it was looked at")
				}
				c.equal("StreamStatus", d.text("StreamStatus"), "UPDATING")
				c.equal("shards", len(d.list("Shards")), 3)
				c.isError(c.merged().twice, "ResourceInUseException", "Stream "+c.merged().name+
					" under account "+c.main().account+" not ACTIVE, instead in state UPDATING")
			},
		},
		{
			"merge-shards/child", mergeShards,
			"The child has both parents, the merged one first, and their range.",
			kinesalite("mergeShards"), nothing, func(c *check) {
				shards := c.merged().after.list("Shards")
				c.equal("shards", len(shards), 4)
				child := shards[3]
				c.equal("ShardId", child.text("ShardId"), shardID(3))
				c.equal("ParentShardId", child.text("ParentShardId"), shardID(0))
				c.equal("AdjacentParentShardId", child.text("AdjacentParentShardId"), shardID(1))
				c.equal("start", child.text("HashKeyRange.StartingHashKey"), thirds[0][0])
				c.equal("end", child.text("HashKeyRange.EndingHashKey"), thirds[1][1])
			},
		},
		{
			"merge-shards/parents-closed", mergeShards,
			"Both parents end at one time, with the largest counter, and the child begins above " +
				"both.",
			kinesalite("mergeShards"), nothing, func(c *check) {
				shards := c.merged().after.list("Shards")
				first := bigNumber(shards[0].text("SequenceNumberRange.EndingSequenceNumber"))
				second := bigNumber(shards[1].text("SequenceNumberRange.EndingSequenceNumber"))
				c.want(first != nil && second != nil, "two ends", shards)
				c.equal("counter", first.Text(16)[11:27], "7fffffffffffffff")
				c.equal("time", second.Text(16)[29:38], first.Text(16)[29:38])
				c.climbs(c.merged().after)
			},
		},
		{
			"merge-shards/routing", putRecord, "Records go to the child.", onPage(mergeShards),
			nothing,
			func(c *check) { c.equal("ShardId", c.merged().put.text("ShardId"), shardID(3)) },
		},
		{
			"merge-shards/child-shards", getRecords,
			"The end of either parent names the child, with both parents.",
			onPage("ChildShard"), nothing, func(c *check) {
				children := c.merged().endOfAdjacent.list("ChildShards")
				c.equal("children", len(children), 1)
				c.equal("ParentShards", children[0].texts("ParentShards"),
					[]string{shardID(0), shardID(1)})
			},
		},
	}...)
}

func mergeRefusals() []fact {
	pair := func(id, says string, stream func(c *check) string, first, second int) fact {
		return fact{
			"merge-shards/" + id, mergeShards, says, kinesalite("mergeShards"), nothing,
			func(c *check) {
				name := stream(c)
				c.refused(mergeShards, object{
					"StreamName": name, "ShardToMerge": shardID(first),
					"AdjacentShardToMerge": shardID(second),
				}, "InvalidArgumentException",
					"Shards "+shardID(first)+" and "+shardID(second)+" in "+
						c.under(name)+" are not an adjacent pair of shards eligible for merging")
			},
		}
	}
	return []fact{
		pair("not-adjacent", "Shards that are not neighbours are refused.", (*check).borders, 0, 2),
		pair("inverted", "Neighbours in the wrong order are refused.", func(c *check) string {
			return c.stream("inverted", object{"ShardCount": 2})
		}, 1, 0),
		{
			"merge-shards/impossible-shard", mergeShards,
			"A shard id that no shard can have, as either of the two, is refused before an " +
				"unknown stream.",
			kinesalite("mergeShards"), nothing, func(c *check) {
				for _, id := range impossibleShards {
					for _, pair := range [][2]string{{id, shardID(0)}, {shardID(0), id}} {
						c.refused(mergeShards, object{
							"StreamName": c.absent(), "ShardToMerge": pair[0],
							"AdjacentShardToMerge": pair[1],
						}, "ResourceNotFoundException", "Could not find shard "+id+" in "+
							c.under(c.absent())+".")
					}
				}
				c.refused(mergeShards, object{
					"StreamName": c.absent(), "ShardToMerge": shardID(0),
					"AdjacentShardToMerge": "2147483647",
				}, "ResourceNotFoundException", c.notFound(c.absent()))
			},
		},
		{
			"merge-shards/absent-shard", mergeShards,
			"An AdjacentShardToMerge that the stream does not have cannot be found.",
			kinesalite("mergeShards"), nothing, func(c *check) {
				c.refused(mergeShards, object{
					"StreamName": c.main().name, "ShardToMerge": shardID(0),
					"AdjacentShardToMerge": "shardId-5",
				}, "ResourceNotFoundException", "Could not find shard "+shardID(5)+" in "+
					c.under(c.main().name)+".")
			},
		},
	}
}
