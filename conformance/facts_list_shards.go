package main

import "time"

const listShards = "ListShards"

func listShardsFacts() []fact {
	return append(listShardsPages(), []fact{
		{
			"list-shards/all", listShards, "All shards come, in the form of DescribeStream.",
			kinesalite("listShards"), nothing, func(c *check) {
				shards := c.ok(listShards, object{"StreamName": c.main().name})
				c.members(shards, "Shards")
				c.equal("Shards", shards.at("Shards"), c.main().description.at("Shards"))
			},
		},
		{
			"list-shards/after", listShards,
			"ExclusiveStartShardId begins after that shard.",
			onPage(listShards), nothing, func(c *check) {
				rest := c.ok(listShards, object{
					"StreamName": c.main().name, "ExclusiveStartShardId": shardID(1),
				})
				c.equal("shards", len(rest.list("Shards")), 1)
				c.equal("ShardId", rest.text("Shards.0.ShardId"), shardID(2))
			},
		},
		{
			"list-shards/creation-time", listShards,
			"StreamCreationTimestamp of another stream of the name finds no stream.",
			guess("the reference uses it to distinguish streams of one name, and names no error"),
			nothing, func(c *check) {
				c.refused(listShards, object{
					"StreamName": c.main().name, "StreamCreationTimestamp": time.Now().Unix() - 1e7,
				}, "ResourceNotFoundException", "")
			},
		},
		{
			"list-shards/unnamed", listShards,
			"A request without a stream and NextToken is refused with InvalidArgumentException.",
			kinesalite("listShards"), nothing, func(c *check) {
				c.refused(listShards, object{}, "InvalidArgumentException", "")
			},
		},
	}...)
}

func listShardsPages() []fact {
	return []fact{
		{
			"list-shards/pages", listShards,
			"MaxResults bounds a page, and NextToken leads to the next one until all are listed.",
			onPage(listShards), nothing, func(c *check) {
				a := c.ok(listShards, object{"StreamName": c.main().name, "MaxResults": 1})
				for i := range 3 {
					c.equal("shards", len(a.list("Shards")), 1)
					c.equal("ShardId", a.text("Shards.0.ShardId"), shardID(i))
					c.want(a.has("NextToken") == (i < 2), "NextToken until the last page", a)
					if i < 2 {
						a = c.ok(listShards, object{
							"NextToken":  a.text("NextToken"),
							"MaxResults": 1,
						})
					}
				}
			},
		},
		{
			"list-shards/token-and-name", listShards,
			"NextToken and StreamName together are refused.",
			kinesalite("listShards"), nothing, func(c *check) {
				c.refused(listShards, c.tokenAnd("StreamName", c.main().name),
					"InvalidArgumentException",
					"NextToken and StreamName cannot be provided together.")
			},
		},
		{
			"list-shards/token-and-arn", listShards,
			"NextToken and StreamARN together are refused.",
			quotedIn("aws-cli#9635"), nothing, func(c *check) {
				c.refused(listShards, c.tokenAnd("StreamARN", c.main().arn),
					"InvalidArgumentException", "NextToken and StreamARN cannot be provided "+
						"together.")
			},
		},
		{
			"list-shards/token-and-start", listShards,
			"NextToken and ExclusiveStartShardId together are refused.",
			quotedIn("amazon-kinesis-scaling-utils#82"), nothing, func(c *check) {
				c.refused(listShards, c.tokenAnd("ExclusiveStartShardId", shardID(0)),
					"InvalidArgumentException",
					"NextToken and ExclusiveStartShardId cannot be provided together.")
			},
		},
		{
			"list-shards/token-and-filter", listShards,
			"NextToken and ShardFilter together are refused.",
			quotedIn("beam#33478"), nothing, func(c *check) {
				c.refused(listShards, c.tokenAnd("ShardFilter", object{"Type": "AT_LATEST"}),
					"InvalidArgumentException",
					"NextToken and ShardFilter cannot be provided together.")
			},
		},
	}
}

// listShardsTokens are about refused tokens.
func listShardsTokens() []fact {
	return []fact{
		{
			"list-shards/bad-token", listShards,
			"An invalid NextToken is refused with InvalidArgumentException.",
			guess("the reference has InvalidArgumentException and ExpiredNextTokenException"),
			nothing,
			func(c *check) {
				c.refused(listShards, object{"NextToken": "nonsense"}, "InvalidArgumentException",
					"")
			},
		},
		{
			"list-shards/token-expires", listShards, "A NextToken expires after 300 seconds.",
			onPage(listShards), patience, func(c *check) {
				in := c.tokenAnd("MaxResults", 1)
				c.pause(305 * time.Second)
				c.refused(listShards, in, "ExpiredNextTokenException", "")
			},
		},
	}
}

// tokenAnd returns a ListShards request with a valid token and one more member.
func (c *check) tokenAnd(member string, value any) object {
	first := c.ok(listShards, object{"StreamName": c.main().name, "MaxResults": 1})
	c.want(first.text("NextToken") != "", "a NextToken", first)
	return object{"NextToken": first.text("NextToken"), member: value}
}
