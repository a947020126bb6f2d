package main

import "encoding/base64"

const getRecords = "GetRecords"

func getRecordsFacts() []fact {
	return append(getRecordsEndFacts(), []fact{
		{
			"get-records/record-members", getRecords,
			"A record of an unencrypted stream has SequenceNumber, ApproximateArrivalTimestamp, " +
				"Data and PartitionKey, and no EncryptionType.",
			localstack("test_record_lifecycle_data_integrity (its recorded answer)"), nothing,
			func(c *check) {
				for _, r := range c.reading().records {
					c.members(r, "SequenceNumber", "ApproximateArrivalTimestamp", "Data",
						"PartitionKey")
				}
			},
		},
		{
			"get-records/data", getRecords, "Data and partition keys come back as they were.",
			localstack("test_record_lifecycle_data_integrity"), nothing, func(c *check) {
				for i, r := range c.reading().records {
					data, err := base64.StdEncoding.DecodeString(r.text("Data"))
					c.want(err == nil, "base64", r.text("Data"))
					c.equal("Data", string(data), readingData[i])
					c.equal("PartitionKey", r.text("PartitionKey"), "key "+readingData[i])
				}
			},
		},
		{
			"get-records/order", getRecords, "Records come in the order of their sequence numbers.",
			onPage(getRecords), nothing, func(c *check) {
				for i, r := range c.reading().records {
					c.equal("SequenceNumber", r.text("SequenceNumber"),
						c.reading().puts[i].text("SequenceNumber"))
				}
			},
		},
		{
			"get-records/arrival", getRecords,
			"Arrival times are seconds to the millisecond, never step back, and are near the " +
				"time in the sequence number.",
			kinesalite("helpers"), nothing, func(c *check) {
				last := 0.0
				for _, r := range c.reading().records {
					at, ok := r.number("ApproximateArrivalTimestamp")
					c.want(ok && at >= last, "a time of the last one or later", r)
					last = at
					hex := bigNumber(r.text("SequenceNumber")).Text(16)
					encoded := bigNumber(hexNumber(hex[30:38])).Int64()
					c.want(at-float64(encoded) >= 0 && at-float64(encoded) <= 3,
						"at most 3 s after the number's", at-float64(encoded))
				}
			},
		},
	}...)
}

// getRecordsAnswers are about an answer's members besides its records.
func getRecordsAnswers() []fact {
	return []fact{
		{
			"get-records/members", getRecords,
			"An answer of an open shard has Records, NextShardIterator and MillisBehindLatest.",
			kinesalite("mergeShards"), nothing, func(c *check) {
				c.members(c.reading().last, "Records", "NextShardIterator", "MillisBehindLatest")
			},
		},
		{
			"get-records/caught-up", getRecords, "MillisBehindLatest is 0 at the end of an open " +
				"shard.",
			onPage(getRecords), nothing, func(c *check) {
				c.equal("MillisBehindLatest", c.reading().last.at("MillisBehindLatest"), 0)
			},
		},
		{
			"get-records/behind", getRecords,
			"MillisBehindLatest is above 0 when records are left behind the answer.",
			onPage(getRecords), nothing, func(c *check) {
				a := c.ok(getRecords, object{
					"Limit": 1,
					"ShardIterator": c.iterator(c.reading().name, 0,
						object{"ShardIteratorType": "TRIM_HORIZON"}),
				})
				if len(a.list("Records")) == 0 {
					c.skip("the first call brought no record")
				}
				behind, ok := a.number("MillisBehindLatest")
				c.want(ok && behind > 0, "more than 0", a.at("MillisBehindLatest"))
			},
		},
		{
			"get-records/limit", getRecords, "Limit bounds the records of an answer.",
			onPage(getRecords), nothing, func(c *check) {
				iterator := c.iterator(c.reading().name, 0,
					object{"ShardIteratorType": "TRIM_HORIZON"})
				var sizes []int
				c.eventually("the records can be read", func() bool {
					a := c.ok(getRecords, object{"Limit": 3, "ShardIterator": iterator})
					if n := len(a.list("Records")); n > 0 {
						sizes = append(sizes, n)
					}
					iterator = a.text("NextShardIterator")
					return len(sizes) > 1
				})
				c.equal("records of the calls", sizes, []int{3, 1})
			},
		},
		{
			"get-records/empty", getRecords, "No records are an empty list, with an iterator to " +
				"go on.",
			onPage(getRecords), nothing, func(c *check) {
				a := c.ok(getRecords, object{"ShardIterator": c.iterator(c.reading().name, 0,
					object{"ShardIteratorType": "LATEST"})})
				c.equal("Records", a.at("Records"), []any{})
				c.want(a.text("NextShardIterator") != "", "a NextShardIterator", a)
			},
		},
	}
}

// getRecordsEndFacts are about the end of a closed shard.
func getRecordsEndFacts() []fact {
	return []fact{
		{
			"get-records/closed-shard", getRecords,
			"A closed shard's records can still be read, also those put while UPDATING.",
			onPage("SplitShard; Developer Guide: After resharding"), nothing, func(c *check) {
				c.equal("records", len(c.split().parentRecords), c.split().parentPuts)
			},
		},
		{
			"get-records/shard-end", getRecords,
			"At the end of a closed shard there is no NextShardIterator.",
			onPage(getRecords), nothing, func(c *check) {
				c.want(!c.split().end.has("NextShardIterator"), "no NextShardIterator",
					c.split().end)
				c.contains(c.split().end, "Records", "MillisBehindLatest")
			},
		},
		{
			"get-records/child-shards", getRecords,
			"The answer at the end of a closed shard has ChildShards with ids, parents and ranges.",
			onPage("GetRecords, ChildShard"), nothing, func(c *check) {
				children := c.split().end.list("ChildShards")
				c.equal("children", len(children), 2)
				for i, child := range children {
					c.members(child, "ShardId", "ParentShards", "HashKeyRange")
					c.equal("ShardId", child.text("ShardId"), shardID(i+1))
					c.equal("ParentShards", child.texts("ParentShards"), []string{shardID(0)})
				}
				c.equal("range", children[1].text("HashKeyRange.StartingHashKey"), middle)
			},
		},
		{
			"get-records/child-shards-at-end-only", getRecords,
			"Before its end a shard's answers have no ChildShards.",
			onPage(getRecords), nothing, func(c *check) {
				for _, page := range c.split().before {
					c.want(!page.has("ChildShards"), "no ChildShards", page)
				}
				c.want(!c.reading().last.has("ChildShards"), "no ChildShards", c.reading().last)
			},
		},
		{
			"get-records/closed-latest", getRecords,
			"LATEST of a closed shard leads to its end.",
			kinesalite("mergeShards"), nothing, func(c *check) {
				iterator := c.iterator(c.split().name, 0, object{"ShardIteratorType": "LATEST"})
				c.eventually("the end comes", func() bool {
					a := c.ok(getRecords, object{"ShardIterator": iterator})
					c.equal("Records", a.at("Records"), []any{})
					iterator = a.text("NextShardIterator")
					return iterator == ""
				})
			},
		},
	}
}
