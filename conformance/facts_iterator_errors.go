package main

import (
	"strings"
	"time"
)

func iteratorErrorFacts() []fact {
	return append(iteratorShardFacts(), append(iteratorNumberFacts(), iteratorTypeFacts()...)...)
}

// iteratorTypeFacts are about iterator types with a missing or superfluous member.
func iteratorTypeFacts() []fact {
	choice := "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and " +
		"StartingSequenceNumber or (2) TRIM_HORIZON or LATEST and no StartingSequenceNumber. " +
		"Request specified "
	lone := func(kind, tail string, members object) fact {
		return fact{
			"get-shard-iterator/" + strings.ToLower(strings.ReplaceAll(kind, "_", "-")) + "-choice",
			getShardIterator, kind + tail + " is refused.", kinesalite("getShardIterator"), nothing,
			func(c *check) {
				c.refused(getShardIterator, object{
					"StreamName": c.main().name, "ShardId": shardID(0), "ShardIteratorType": kind,
				}.with(members), "InvalidArgumentException", choice+kind+tail)
			},
		}
	}
	five := object{"StartingSequenceNumber": "5"}
	all := []fact{
		lone("AT_SEQUENCE_NUMBER", " and no StartingSequenceNumber.", nil),
		lone("AFTER_SEQUENCE_NUMBER", " and no StartingSequenceNumber.", nil),
		lone("LATEST", " and also a StartingSequenceNumber.", five),
		lone("TRIM_HORIZON", " and also a StartingSequenceNumber.", five),
		{
			"get-shard-iterator/no-timestamp", getShardIterator,
			"AT_TIMESTAMP without Timestamp is refused.",
			kinesalite("getShardIterator"), nothing, func(c *check) {
				c.refused(getShardIterator, object{
					"StreamName": c.main().name, "ShardId": shardID(0),
					"ShardIteratorType": "AT_TIMESTAMP",
				}, "InvalidArgumentException", "Must specify timestampInMillis parameter for "+
					"iterator of"+
					" type AT_TIMESTAMP. Current request has no timestamp parameter.")
			},
		},
		{
			"get-shard-iterator/future", getShardIterator,
			"AT_TIMESTAMP of the future is refused.", quotedIn("aws-sdk-java#2588"), nothing,
			func(c *check) {
				a := c.call(getShardIterator, object{
					"StreamName": c.main().name, "ShardId": shardID(0),
					"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": time.Now().Unix() + 1e6,
				})
				c.isError(a, "InvalidArgumentException", "")
				c.matches("message", a.message(), `^The timestampInMillis parameter cannot be `+
					`greater `+
					`than the currentTimestampInMillis\. timestampInMillis: \d{13}, `+
					`currentTimestampInMillis: \d{13}$`)
			},
		},
	}
	for i := range all {
		all[i].says = strings.Replace(all[i].says, ". is refused.", " is refused.", 1)
	}
	return all
}

// iteratorShardFacts are about absent shards and the forms of a shard id.
func iteratorShardFacts() []fact {
	missing := func(id, says, shard, named string) fact {
		return fact{
			"get-shard-iterator/" + id, getShardIterator, says, kinesalite("getShardIterator"),
			nothing,
			func(c *check) {
				text := "Shard " + named + " in " + c.under(c.absent()) + " does not exist"
				if named == "" {
					text = "Could not find shard " + shard + " in " + c.under(c.absent()) + "."
				}
				c.refused(getShardIterator, object{
					"StreamName": c.absent(), "ShardId": shard, "ShardIteratorType": "LATEST",
				}, "ResourceNotFoundException", text)
			},
		}
	}
	return []fact{
		missing("absent-stream", "An absent stream is reported as an absent shard.",
			"2147483647", "shardId-002147483647"),
		missing("absent-stream-prefix", "The error has the shard id in its full form.",
			"a-00002147483647", "shardId-002147483647"),
		missing("shard-number-large", "A shard number over 2^31-1 cannot be found.", "2147483648",
			""),
		missing("shard-no-number", "A shard id without a number cannot be found.", "ABKLFD8", ""),
		missing("shard-exponent", "A shard number with an exponent cannot be found.", "2.14E4", ""),
		{
			"get-shard-iterator/absent-shard", getShardIterator,
			"A shard that the stream does not have does not exist.",
			kinesalite("getShardIterator"), nothing, func(c *check) {
				c.refused(getShardIterator, object{
					"StreamName": c.main().name, "ShardId": "shardId-5",
					"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": "5",
				}, "ResourceNotFoundException", "Shard "+shardID(5)+" in "+c.under(c.main().name)+
					" does not exist")
			},
		},
	}
}

// iteratorNumberFacts are about StartingSequenceNumbers that the shard cannot have.
func iteratorNumberFacts() []fact {
	foreign := func(id, says string, shard int, number, shown string) fact {
		return fact{
			"get-shard-iterator/number-" + id, getShardIterator, says,
			kinesalite("getShardIterator"),
			nothing, func(c *check) {
				c.refused(getShardIterator, object{
					"StreamName": c.main().name, "ShardId": shardID(shard),
					"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": number,
				}, "InvalidArgumentException", "StartingSequenceNumber "+shown+
					" used in GetShardIterator on shard "+shardID(shard)+" in "+
					c.under(c.main().name)+
					" is invalid.")
			},
		}
	}
	index := hexNumber("20000000000800000000000000000000000000000000002")
	negative := hexNumber("20000000000000000000000000000000000000800000002")
	return []fact{
		{
			"get-shard-iterator/number-of-another-shard", getShardIterator,
			"A StartingSequenceNumber that encodes another shard is refused.",
			kinesalite("getShardIterator"), nothing, func(c *check) {
				c.refused(getShardIterator, object{
					"StreamName": c.main().name, "ShardId": "shardId-0",
					"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": "5",
				}, "InvalidArgumentException",
					"Invalid StartingSequenceNumber. It encodes "+shardID(5)+
						", while it was used in a call to a shard with "+shardID(0))
			},
		},
		{
			"get-shard-iterator/number-zero", getShardIterator,
			"StartingSequenceNumber 0, of an old version, is an InternalFailure, status 500.",
			kinesalite("getShardIterator"), nothing, func(c *check) {
				a := c.call(getShardIterator, object{
					"StreamName": c.main().name, "ShardId": "shardId-0",
					"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": "0",
				})
				c.want(a.status == 500 && a.code() == "InternalFailure", "500 InternalFailure",
					a.String())
			},
		},
		foreign("late", "A StartingSequenceNumber with too late a date is invalid.", 0,
			hexNumber("13bb2cc3d80000000000000000000000"),
			"26227199374822427428162556223570313216"),
		foreign("index-sign", "A StartingSequenceNumber with a negative counter is invalid.", 0,
			index,
			index),
		{
			"get-shard-iterator/number-shard-sign", getShardIterator,
			"A StartingSequenceNumber with a negative shard encodes shardId--02147483648.",
			kinesalite("getShardIterator"), nothing, func(c *check) {
				c.refused(getShardIterator, object{
					"StreamName": c.main().name, "ShardId": "shardId-0",
					"ShardIteratorType":      "AT_SEQUENCE_NUMBER",
					"StartingSequenceNumber": negative,
				}, "InvalidArgumentException", "Invalid StartingSequenceNumber. It encodes "+
					"shardId--02147483648, while it was used in a call to a shard with "+shardID(0))
			},
		},
	}
}
