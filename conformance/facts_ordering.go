package main

import (
	"fmt"
	"time"
)

// orderingFacts are about SequenceNumberForOrdering: which numbers are accepted.
func orderingFacts() []fact {
	taken := func(id, says, hex string) fact {
		return fact{
			"put-record/ordering-" + id, putRecord, says, kinesalite("putRecord"), nothing,
			func(c *check) {
				c.put(object{"SequenceNumberForOrdering": hexNumber(hex)})
			},
		}
	}
	refused := func(id, says string, hex func() string) fact {
		return fact{
			"put-record/ordering-" + id, putRecord, says, kinesalite("putRecord"), nothing,
			func(c *check) {
				number := hexNumber(hex())
				c.refused(putRecord, c.record(object{"SequenceNumberForOrdering": number}),
					"InvalidArgumentException", "ExclusiveMinimumSequenceNumber "+number+
						" used in PutRecord on "+c.under(c.main().name)+" is invalid.")
			},
		}
	}
	constant := func(hex string) func() string { return func() string { return hex } }
	return []fact{
		taken("smallest", "SequenceNumberForOrdering may be the smallest of version 2.",
			"20000000000000000000000000000000000000000000002"),
		taken("version-1", "SequenceNumberForOrdering may be of version 1.",
			"20000000000000000000000000000000000000000000001"),
		taken("shard-sign", "SequenceNumberForOrdering may encode a negative shard.",
			"20000000000000000000000000000000000000800000002"),
		refused("version-0", "SequenceNumberForOrdering with a version nibble 0 is refused.",
			constant("20000000000000000000000000000000000000000000000")),
		refused("version-3", "SequenceNumberForOrdering with a version nibble 3 is refused.",
			constant("20000000000000000000000000000000000000000000003")),
		refused("version-4", "SequenceNumberForOrdering with a version nibble 4 is refused.",
			constant("20000000000000000000000000000000000000000000004")),
		refused("initial-3", "SequenceNumberForOrdering that begins with 3 is refused.",
			constant("30000000000000000000000000000000000000000000001")),
		refused("initial-1", "SequenceNumberForOrdering that begins with 1 is refused.",
			constant("1ffffffffff7fffffffffffffff000000000007fffffff2")),
		refused("index-sign", "SequenceNumberForOrdering with a negative counter is refused.",
			constant("20000000000800000000000000000000000000000000002")),
		refused("future", "SequenceNumberForOrdering of the future is refused.", func() string {
			return fmt.Sprintf("200000000000000000000000000000%08x000000002",
				time.Now().Unix()+3600)
		}),
		{
			"put-record/ordering-chained", putRecord,
			"SequenceNumberForOrdering may be the number of the record before, and the next is " +
				"larger.",
			onPage(putRecord), nothing, func(c *check) {
				first := c.ok(putRecord, c.record(nil)).text("SequenceNumber")
				second := c.ok(putRecord, c.record(object{"SequenceNumberForOrdering": first})).
					text("SequenceNumber")
				c.want(bigNumber(second).Cmp(bigNumber(first)) > 0, "more than "+first, second)
			},
		},
	}
}
