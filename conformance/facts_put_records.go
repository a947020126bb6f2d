package main

import (
	"bytes"
	"fmt"
	"math/big"
)

const putRecords = "PutRecords"

// entries are n records of PutRecords.
func entries(n int, entry func(i int) object) []object {
	list := make([]object, n)
	for i := range list {
		list[i] = entry(i)
	}
	return list
}

func putRecordsFacts() []fact {
	return append(putRecordsSizes(), []fact{
		{
			"put-records/members", putRecords,
			"The answer has FailedRecordCount and a result for each record, of ShardId and " +
				"SequenceNumber.",
			onPage(putRecords), nothing, func(c *check) {
				a := c.ok(putRecords, object{"StreamName": c.main().name, "Records": entries(2,
					func(int) object { return object{"PartitionKey": "a", "Data": ""} })})
				c.contains(a, "FailedRecordCount", "Records")
				c.equal("FailedRecordCount", a.at("FailedRecordCount"), 0)
				c.equal("results", len(a.list("Records")), 2)
				c.members(a.list("Records")[0], "ShardId", "SequenceNumber")
			},
		},
		{
			"put-records/order", putRecords, "Results come in the order of the request.",
			onPage(putRecords), nothing, func(c *check) {
				a := c.ok(putRecords, object{"StreamName": c.main().name, "Records": entries(9,
					func(i int) object {
						return object{
							"PartitionKey": "k", "Data": "",
							"ExplicitHashKey": thirds[i%3][0],
						}
					})})
				c.equal("results", len(a.list("Records")), 9)
				for i, r := range a.list("Records") {
					c.equal(fmt.Sprintf("result %d", i), r.text("ShardId"), shardID(i%3))
				}
			},
		},
		{
			"put-records/numbers-differ", putRecords,
			"Every record has a SequenceNumber of its own, above those of earlier calls.",
			onPage(putRecords), nothing, func(c *check) {
				floor := bigNumber(c.ok(putRecord, c.record(nil)).text("SequenceNumber"))
				a := c.ok(putRecords, object{"StreamName": c.main().name, "Records": entries(20,
					func(int) object { return object{"PartitionKey": "a", "Data": ""} })})
				c.equal("results", len(a.list("Records")), 20)
				seen := map[string]bool{}
				for _, r := range a.list("Records") {
					number := r.text("SequenceNumber")
					c.want(!seen[number], "a number of its own", number)
					seen[number] = true
					parsed, ok := new(big.Int).SetString(number, 10)
					c.want(ok && parsed.Cmp(floor) > 0, "more than "+floor.String(), number)
				}
			},
		},
		{
			"put-records/hash-key-too-large", putRecords,
			"One ExplicitHashKey of 2^128 refuses the whole request.",
			kinesalite("putRecords"), nothing, func(c *check) {
				over := "340282366920938463463374607431768211456"
				c.refused(putRecords, object{"StreamName": c.main().name, "Records": []object{
					{"PartitionKey": "a", "Data": ""},
					{"PartitionKey": "a", "Data": "", "ExplicitHashKey": over},
				}}, "InvalidArgumentException", "Invalid ExplicitHashKey. ExplicitHashKey must "+
					"be in "+
					"the range: [0, 2^128-1]. Specified value was "+over)
			},
		},
	}...)
}

func putRecordsSizes() []fact {
	// filled puts n records into three shards. Each has data of that size and a key of one byte.
	filled := func(c *check, n, size int) *answer {
		data := base64Of(bytes.Repeat([]byte{'x'}, size))
		return c.call(putRecords, object{"StreamName": c.main().name, "Records": entries(n,
			func(i int) object {
				return object{"PartitionKey": "k", "Data": data, "ExplicitHashKey": thirds[i%3][0]}
			})})
	}
	return []fact{
		{
			"put-records/five-hundred", putRecords, "500 records are accepted.",
			onPage(putRecords), nothing, func(c *check) {
				a := c.succeeded(putRecords, filled(c, 500, 1))
				c.equal("results", len(a.list("Records")), 500)
			},
		},
		{
			"put-records/over-five-hundred", putRecords, "501 records break a constraint.",
			kinesalite("putRecords"), nothing, func(c *check) {
				a := filled(c, 501, 1)
				c.isError(a, "ValidationException", "")
				c.matches("message", a.message(), `^1 validation error detected: Value '\[.*' at `+
					`'records' failed to satisfy constraint: Member must have length less than `+
					`or equal to `+
					`500$`)
			},
		},
		{
			"put-records/ten-violations", putRecords,
			"An error lists at most ten broken constraints.",
			kinesalite("putRecords"), nothing, func(c *check) {
				a := c.call(putRecords, object{"StreamName": c.main().name, "Records": entries(12,
					func(int) object { return object{"PartitionKey": "", "Data": ""} })})
				c.isError(a, "ValidationException", "")
				c.matches("message", a.message(), `^10 validation errors detected: Value '' at `+
					`'records\.1\.member\.partitionKey' failed`)
			},
		},
		{
			"put-records/ten-mebibytes", putRecords,
			"A request of 10 MiB of data and partition keys is taken.",
			onPage(putRecords), nothing, func(c *check) {
				// On AWS most of these records exceed the shards' throughput and fail one by one,
				// but the request as a whole is taken.
				a := c.succeeded(putRecords, filled(c, 10, 1<<20-1))
				c.equal("results", len(a.list("Records")), 10)
			},
		},
		{
			"put-records/over-ten-mebibytes", putRecords,
			"A request of more than 10 MiB is refused with InvalidArgumentException.",
			quotedIn("amazon-kinesis-streams-for-fluent-bit#21, when the limit was 5 MB"), nothing,
			func(c *check) {
				a := filled(c, 11, 1<<20-2)
				c.isError(a, "InvalidArgumentException", "")
				c.matches("message", a.message(), `^Records size exceeds \d+ MB limit$`)
			},
		},
		{
			"put-records/over-one-mebibyte", putRecords,
			"A record of more than the stream's record size refuses the whole request.",
			guess("the reference speaks of the request; no report of a trial was found"), nothing,
			func(c *check) {
				a := filled(c, 1, 1<<20)
				c.want(a.status == 400, "400", a.String())
			},
		},
	}
}
