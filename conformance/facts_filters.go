package main

import "slices"

// filterFacts are about ListShards' ShardFilter, in the split scene: shard 0 was split into 1 and
// 2, and 2 into 3 and 4.
func filterFacts() []fact {
	lists := func(id, says string, filter func(s splitScene) object, want ...int) fact {
		return fact{
			"list-shards/filter-" + id, listShards, says, onPage("ShardFilter"), nothing,
			func(c *check) {
				filter := filter(c.split())
				a := c.ok(listShards, object{"StreamName": c.split().name, "ShardFilter": filter})
				var got, ids []string
				for _, shard := range a.list("Shards") {
					got = append(got, shard.text("ShardId"))
				}
				for _, i := range want {
					ids = append(ids, shardID(i))
				}
				slices.Sort(got)
				c.equal("shards", got, ids)
			},
		}
	}
	of := func(kind string) func(splitScene) object {
		return func(splitScene) object { return object{"Type": kind} }
	}
	at := func(kind string) func(splitScene) object {
		return func(s splitScene) object { return object{"Type": kind, "Timestamp": s.between} }
	}
	return []fact{
		lists("at-latest", "AT_LATEST lists the open shards.", of("AT_LATEST"), 1, 3, 4),
		lists("at-trim-horizon", "AT_TRIM_HORIZON lists the shards that were open at the trim "+
			"horizon.",
			of("AT_TRIM_HORIZON"), 0),
		lists("from-trim-horizon", "FROM_TRIM_HORIZON lists all shards since the trim horizon.",
			of("FROM_TRIM_HORIZON"), 0, 1, 2, 3, 4),
		lists("after-shard", "AFTER_SHARD_ID begins after that shard.", func(splitScene) object {
			return object{"Type": "AFTER_SHARD_ID", "ShardId": shardID(1)}
		}, 2, 3, 4),
		lists("at-timestamp", "AT_TIMESTAMP lists the shards that were open at that time.",
			at("AT_TIMESTAMP"), 1, 2),
		lists("from-timestamp",
			"FROM_TIMESTAMP lists all open shards, and those closed at that time or later.",
			at("FROM_TIMESTAMP"), 1, 2, 3, 4),
		lists("old-timestamp", "FROM_TIMESTAMP of long ago lists all shards.",
			func(splitScene) object {
				return object{"Type": "FROM_TIMESTAMP", "Timestamp": 1e9}
			}, 0, 1, 2, 3, 4),
		{
			"list-shards/filter-no-shard", listShards,
			"AFTER_SHARD_ID without ShardId is refused with InvalidArgumentException.",
			guess("the reference says that the member must be there"), nothing, func(c *check) {
				c.refused(listShards, object{
					"StreamName": c.main().name, "ShardFilter": object{"Type": "AFTER_SHARD_ID"},
				}, "InvalidArgumentException", "")
			},
		},
		{
			"list-shards/filter-no-timestamp", listShards,
			"AT_TIMESTAMP without Timestamp is refused with InvalidArgumentException.",
			guess("the reference says that the member must be there"), nothing, func(c *check) {
				c.refused(listShards, object{
					"StreamName": c.main().name, "ShardFilter": object{"Type": "AT_TIMESTAMP"},
				}, "InvalidArgumentException", "")
			},
		},
	}
}
