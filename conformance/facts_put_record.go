package main

import (
	"bytes"
	"encoding/base64"
	"strings"
)

const putRecord = "PutRecord"

// base64Of encodes a blob for JSON.
func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// record is a PutRecord request for the main stream.
func (c *check) record(members object) object {
	return object{"StreamName": c.main().name, "PartitionKey": "a", "Data": ""}.with(members)
}

// put puts a record with those members, which must succeed, and returns the answer.
func (c *check) put(members object) object {
	a := c.ok(putRecord, c.record(members))
	c.matches("SequenceNumber", a.text("SequenceNumber"), `^\d+$`)
	return a
}

// putsInto checks that a record with those members goes to a shard.
func (c *check) putsInto(shard int, members object) {
	a := c.put(members)
	c.equal("ShardId", a.text("ShardId"), shardID(shard))
}

func putRecordFacts() []fact {
	routed := func(id, says string, shard int, members object) fact {
		return fact{
			"put-record/" + id, putRecord, says, kinesalite("putRecord"), nothing,
			func(c *check) { c.putsInto(shard, members) },
		}
	}
	return append(putRecordSizes(), []fact{
		routed("routing", "The MD5 of the partition key's UTF-8 is the hash key: a goes to the "+
			"first "+
			"third.", 0, object{}),
		routed("routing-b", "The partition key b goes to the second third.", 1,
			object{"PartitionKey": "b"}),
		routed("last-hash-key", "ExplicitHashKey may be 2^128-1.", 2,
			object{"ExplicitHashKey": maxHashKey}),
		routed("below-boundary", "ExplicitHashKey overrides the partition key; a shard's range "+
			"includes its EndingHashKey.", 1, object{"ExplicitHashKey": thirds[1][1]}),
		routed("at-boundary", "A shard's range begins with its StartingHashKey.", 2,
			object{"ExplicitHashKey": thirds[2][0]}),
	}...)
}

// putRecordAnswers are about the answer's members.
func putRecordAnswers() []fact {
	return []fact{
		{
			"put-record/members", putRecord,
			"The answer has ShardId and SequenceNumber, and of an unencrypted stream nothing " +
				"else but perhaps EncryptionType NONE.",
			onPage(putRecord), nothing, func(c *check) {
				a := c.ok(putRecord, c.record(nil))
				if a.has("EncryptionType") {
					c.equal("EncryptionType", a.text("EncryptionType"), "NONE")
					delete(a, "EncryptionType")
				}
				c.members(a, "ShardId", "SequenceNumber")
			},
		},
		{
			"put-record/hash-key-too-large", putRecord, "ExplicitHashKey 2^128 is refused.",
			kinesalite("putRecord"), nothing, func(c *check) {
				over := "340282366920938463463374607431768211456"
				c.refused(putRecord, c.record(object{"ExplicitHashKey": over}),
					"InvalidArgumentException", "Invalid ExplicitHashKey. ExplicitHashKey must "+
						"be in the"+
						" range: [0, 2^128-1]. Specified value was "+over)
			},
		},
		{
			"put-record/sequence-number", putRecord,
			"A SequenceNumber has 56 digits and encodes version 2, the shard and its creation " +
				"time.",
			kinesalite("helpers"), nothing, func(c *check) {
				a := c.ok(putRecord, c.record(object{"ExplicitHashKey": maxHashKey}))
				c.matches("SequenceNumber", a.text("SequenceNumber"), `^\d{56}$`)
				hex := bigNumber(a.text("SequenceNumber")).Text(16)
				c.matches("SequenceNumber in hexadecimal", hex,
					`^20[0-9a-f]{8}2[0-9a-f]{16}000[0-9a-f]{8}000000022$`)
			},
		},
		{
			"put-record/ascending", putRecord,
			"Sequence numbers grow with every record of a shard, put one after the other.",
			onPage(putRecord), nothing, func(c *check) {
				last := ""
				for range 20 {
					number := c.put(nil).text("SequenceNumber")
					c.want(last == "" || bigNumber(number).Cmp(bigNumber(last)) > 0,
						"more than "+last, number)
					last = number
				}
			},
		},
		{
			"put-record/by-arn", putRecord, "The stream may be named by StreamARN.",
			onPage(putRecord), nothing, func(c *check) {
				c.put(object{"StreamName": nil, "StreamARN": c.main().arn})
			},
		},
	}
}

func putRecordSizes() []fact {
	sized := func(size int, key string) object {
		return object{"Data": base64Of(bytes.Repeat([]byte{'x'}, size)), "PartitionKey": key}
	}
	return []fact{
		{
			"put-record/empty-data", putRecord, "A record's data may be empty.",
			kinesalite("putRecord"), nothing, func(c *check) { c.putsInto(0, nil) },
		},
		{
			"put-record/key-characters", putRecord,
			"A partition key of 256 characters may be longer in bytes.",
			onPage(putRecord), nothing, func(c *check) {
				c.put(object{"PartitionKey": strings.Repeat("ü", 256)})
			},
		},
		{
			"put-record/one-mebibyte", putRecord,
			"Data and partition key of 1 MiB together are accepted.",
			onPage("Developer Guide: Quotas and limits"), nothing, func(c *check) {
				c.put(sized(1<<20-1, "k"))
			},
		},
		{
			"put-record/over-one-mebibyte", putRecord,
			"Data and partition key of more than the stream's record size are refused with " +
				"InvalidArgumentException or ValidationException.",
			guess("the limit is on AWS's pages, the error since it is per stream is not"), nothing,
			func(c *check) {
				c.isRefusal(c.call(putRecord, c.record(sized(1<<20, "k"))))
			},
		},
	}
}
