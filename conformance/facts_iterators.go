package main

import (
	"encoding/base64"
	"time"
)

const getShardIterator = "GetShardIterator"

func iteratorFacts() []fact {
	from := func(id, says string, source source, index int, members func(s readingScene) object,
	) fact {
		return fact{
			"get-shard-iterator/" + id, getShardIterator, says, source, nothing, func(c *check) {
				first := c.firstFrom(members(c.reading()))
				c.equal("SequenceNumber", first.text("SequenceNumber"),
					c.reading().puts[index].text("SequenceNumber"))
			},
		}
	}
	at := func(kind string, put int) func(s readingScene) object {
		return func(s readingScene) object {
			return object{
				"ShardIteratorType":      kind,
				"StartingSequenceNumber": s.puts[put].text("SequenceNumber"),
			}
		}
	}
	return append(iteratorTokenFacts(), []fact{
		from("trim-horizon", "TRIM_HORIZON begins with the oldest record.",
			onPage(getShardIterator),
			0, func(readingScene) object { return object{"ShardIteratorType": "TRIM_HORIZON"} }),
		from("at-sequence-number", "AT_SEQUENCE_NUMBER begins with that record.",
			onPage(getShardIterator), 2, at("AT_SEQUENCE_NUMBER", 2)),
		from("after-sequence-number", "AFTER_SEQUENCE_NUMBER begins with the record behind it.",
			onPage(getShardIterator), 3, at("AFTER_SEQUENCE_NUMBER", 2)),
		from("at-start", "AT_SEQUENCE_NUMBER of the shard's StartingSequenceNumber begins with "+
			"the "+
			"first record.", localstack("test_record_lifecycle_data_integrity"), 0,
			func(s readingScene) object {
				return object{
					"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": s.start,
				}
			}),
		from("at-timestamp", "AT_TIMESTAMP begins with the first record of that time or later.",
			onPage(getShardIterator), 2, func(s readingScene) object {
				return object{
					"ShardIteratorType": "AT_TIMESTAMP",
					"Timestamp":         s.records[2].at("ApproximateArrivalTimestamp"),
				}
			}),
		from("at-old-timestamp", "AT_TIMESTAMP before the oldest record begins with it.",
			onPage(getShardIterator), 0, func(readingScene) object {
				return object{"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": 1e9}
			}),
	}...)
}

// iteratorLatest are about LATEST, and about ARNs.
func iteratorLatest() []fact {
	return []fact{
		{
			"get-shard-iterator/latest", getShardIterator,
			"LATEST begins with the first record that is put after the call.",
			onPage(getShardIterator), nothing, func(c *check) {
				iterator := c.iterator(c.main().name, 2, object{"ShardIteratorType": "LATEST"})
				put := c.ok(putRecord, c.record(object{
					"ExplicitHashKey": maxHashKey, "PartitionKey": "latest",
				}))
				var seen bool
				c.eventually("the record can be read", func() bool {
					a := c.ok(getRecords, object{"ShardIterator": iterator})
					for _, r := range a.list("Records") {
						seen = seen || r.text("SequenceNumber") == put.text("SequenceNumber")
					}
					iterator = a.text("NextShardIterator")
					return seen
				})
			},
		},
		{
			"get-shard-iterator/by-arn", getShardIterator, "The stream may be named by StreamARN.",
			onPage(getShardIterator), nothing, func(c *check) {
				c.ok(getShardIterator, object{
					"StreamARN": c.reading().arn, "ShardId": shardID(0),
					"ShardIteratorType": "LATEST",
				})
			},
		},
	}
}

func iteratorTokenFacts() []fact {
	return []fact{
		{
			"get-shard-iterator/length", getShardIterator,
			"An iterator is base64 and has at most 512 characters, with a name of 128 too.",
			inModel("ShardIterator"), nothing, func(c *check) {
				iterator := c.iterator(c.main().name, 0, object{"ShardIteratorType": "LATEST"})
				c.matches("ShardIterator", iterator, `^[A-Za-z0-9+/]{1,512}={0,2}$`)
			},
		},
		{
			"get-shard-iterator/bytes", getShardIterator,
			"An iterator has 152 bytes, and 16 more for each 16 characters of the stream's name " +
				"and two; the first eight are the number 1.",
			seenBy("kinesalite db/index.js, in a comment"), nothing, func(c *check) {
				name := c.main().name
				iterator := c.iterator(name, 0, object{"ShardIteratorType": "LATEST"})
				next := c.ok(getRecords, object{"ShardIterator": iterator})
				for _, token := range []string{iterator, next.text("NextShardIterator")} {
					data, err := base64.StdEncoding.DecodeString(token)
					c.want(err == nil, "base64", token)
					c.equal("bytes", len(data), 152+(len(name)+2)/16*16)
					c.equal("first bytes", data[:8], []byte{7: 1})
				}
			},
		},
		{
			"get-shard-iterator/shard-forms", getShardIterator,
			"ShardId may be written as anything that ends in a hyphen and the number.",
			kinesalite("getShardIterator"), nothing, func(c *check) {
				for _, id := range []string{"shardId-0", "any.thing-0", "shard-00000000000000"} {
					c.ok(getShardIterator, object{
						"StreamName": c.main().name, "ShardId": id, "ShardIteratorType": "LATEST",
					})
				}
			},
		},
		{
			"get-records/reuse", getRecords, "An iterator may be used again until it expires.",
			onPage("Developer Guide: Handle startup, shutdown, and throttling; GetShardIterator"),
			nothing,
			func(c *check) {
				iterator := c.iterator(c.reading().name, 0,
					object{"ShardIteratorType": "TRIM_HORIZON"})
				first, _ := c.read(iterator, len(readingData))
				second, _ := c.read(iterator, len(readingData))
				c.equal("the same records", second, first)
			},
		},
		{
			"get-records/quoted-iterator", getRecords,
			"An iterator in double quotes is taken.",
			localstack("test_get_records_shard_iterator_with_surrounding_quotes"), nothing,
			func(c *check) {
				iterator := c.iterator(c.reading().name, 0,
					object{"ShardIteratorType": "TRIM_HORIZON"})
				c.read(`"`+iterator+`"`, len(readingData))
			},
		},
		{
			"get-records/fresh-iterator", getRecords,
			"NextShardIterator is new with every call, also without records.",
			localstack("test_get_records_next_shard_iterator"), nothing, func(c *check) {
				first := c.iterator(c.reading().name, 0, object{"ShardIteratorType": "LATEST"})
				second := c.ok(getRecords, object{"ShardIterator": first}).text("NextShardIterator")
				third := c.ok(getRecords, object{"ShardIterator": second}).text("NextShardIterator")
				c.want(first != second && second != third && first != third && third != "",
					"three iterators", []string{first, second, third})
			},
		},
	}
}

// iteratorEnds are about invalid and expired iterators.
func iteratorEnds() []fact {
	return []fact{
		{
			"get-records/bad-iterator", getRecords,
			"An invalid iterator is refused with InvalidArgumentException.",
			kinesalite("getRecords"), nothing, func(c *check) {
				c.refused(getRecords, object{"ShardIterator": "nonsense"},
					"InvalidArgumentException",
					"Invalid ShardIterator.")
			},
		},
		{
			"get-records/expired-iterator", getRecords,
			"An iterator of more than five minutes ago is refused with ExpiredIteratorException.",
			kinesalite("getRecords"), patience, func(c *check) {
				iterator := c.iterator(c.reading().name, 0, object{"ShardIteratorType": "LATEST"})
				c.pause(305 * time.Second)
				a := c.call(getRecords, object{"ShardIterator": iterator})
				c.isError(a, "ExpiredIteratorException", "")
				stamp := `\w{3} \w{3} \d{2} \d{2}:\d{2}:\d{2} UTC \d{4}`
				c.matches("message", a.message(), `^Iterator expired\. The iterator was created `+
					`at time `+
					stamp+` while right now it is `+stamp+` which is further in the future than `+
					`the `+
					`tolerated delay of 300000 milliseconds\.$`)
			},
		},
	}
}
