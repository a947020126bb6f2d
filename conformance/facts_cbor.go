package main

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

func cborFacts() []fact {
	plain := below("cbor/")
	return append(cborRequests(), []fact{
		plain("answer", "A call in CBOR is answered in "+typeCBOR+".",
			reliedOnBy("Java SDK v2: CBOR is its default for Kinesis"), func(c *check) {
				_, a := c.okCBOR(listStreams, object{})
				c.equal("Content-Type", a.header.Get("Content-Type"), typeCBOR)
				c.want(a.value != nil, "a CBOR map", a.String())
			}),
		plain("time", "A time in an answer is tag 1 and an integer of milliseconds.",
			seenBy("LocalStack's assertion on StreamCreationTimestamp, validated on AWS"),
			func(c *check) {
				_, a := c.okCBOR(describeSummary, object{"StreamName": c.main().name})
				key := []byte("StreamCreationTimestamp")
				at := bytes.Index(a.body, key)
				c.want(at >= 0, "a StreamCreationTimestamp", a.body)
				value := a.body[at+len(key):]
				c.want(len(value) > 9 && value[0] == 0xc1 && value[1] == 0x1b,
					"c1 1b and eight bytes",
					value[:min(len(value), 10)])
			}),
		plain("blob", "A blob in an answer is a byte string.",
			quotedIn("localstack#11220"), func(c *check) {
				iterator := c.iterator(c.reading().name, 0, object{
					"ShardIteratorType":      "AT_SEQUENCE_NUMBER",
					"StartingSequenceNumber": c.reading().puts[1].text("SequenceNumber"),
				})
				var data any
				c.eventually("a record can be read", func() bool {
					a, _ := c.okCBOR(getRecords, object{"ShardIterator": iterator})
					iterator = a.text("NextShardIterator")
					data = a.at("Records.0.Data")
					return data != nil
				})
				got, ok := data.([]byte)
				c.want(ok && string(got) == readingData[1], "the bytes "+readingData[1], data)
			}),
		plain("same-answer", "An answer in CBOR has the same members as in JSON.",
			guess("LocalStack compares them, on its own servers alone"), func(c *check) {
				inJSON := c.describe(c.main().name)
				a, _ := c.okCBOR(describeStream, object{"StreamName": c.main().name})
				for _, path := range []string{
					"StreamName", "StreamARN", "StreamStatus", "Shards", "HasMoreShards",
					"RetentionPeriodHours", "EncryptionType", "EnhancedMonitoring",
				} {
					c.equal(path, a.at("StreamDescription."+path), inJSON.at(path))
				}
			}),
	}...)
}

// cborErrors are about refused calls.
func cborErrors() []fact {
	plain := below("cbor/")
	return []fact{
		plain("error", "An error is a CBOR map of __type and message.",
			seenBy("LocalStack's snapshot of 2025-09-04"), func(c *check) {
				a := c.callCBOR(describeStream, object{"StreamName": c.absent()})
				c.equal("Content-Type", a.header.Get("Content-Type"), typeCBOR)
				c.isError(a, "ResourceNotFoundException", c.notFound(c.absent()))
				c.members(a.value, "__type", "message")
			}),
		plain("constraint", "A broken constraint is reported as in JSON.",
			guess("both protocols are decoded before anything is checked"), func(c *check) {
				in := object{"StreamName": c.main().name, "Limit": 0}
				c.equal("message", c.callCBOR(describeStream, in).message(),
					c.call(describeStream, in).message())
			}),
		plain("not-cbor", "A body that is no CBOR is 400 SerializationException in CBOR.",
			guess("kinesalite has it in its code, not in its tests"), func(c *check) {
				a := c.send(cborBody(listStreams, []byte{0xff, 0x00}))
				c.equal("Content-Type", a.header.Get("Content-Type"), typeCBOR)
				c.isError(a, "SerializationException", "")
			}),
		plain("unknown-operation",
			"An unknown operation is 400 UnknownOperationException in CBOR.",
			guess("kinesalite has it in its code, not in its tests"), func(c *check) {
				a := c.send(cborBody("ListStream", []byte{0xa0}))
				c.equal("Content-Type", a.header.Get("Content-Type"), typeCBOR)
				c.isError(a, "UnknownOperationException", "")
			}),
		plain("empty-body", "A call without a body is 400 SerializationException in CBOR.",
			guess("kinesalite has it in its code, not in its tests"), func(c *check) {
				a := c.send(cborBody(listStreams, nil))
				c.isError(a, "SerializationException", "")
			}),
	}
}

func cborRequests() []fact {
	plain := below("cbor/")
	return []fact{
		plain("put", "A blob in a request is a byte string.",
			reliedOnBy("Java SDK v2: SdkStructuredCborGenerator"), func(c *check) {
				data := []byte{0, 1, 0xfe, 0xff}
				put, _ := c.okCBOR(putRecord, object{
					"StreamName": c.main().name, "PartitionKey": "cbor", "Data": data,
					"ExplicitHashKey": maxHashKey,
				})
				records, _ := c.readOne(c.main().name, 2, put.text("SequenceNumber"))
				c.equal("Data", records.text("Data"), base64.StdEncoding.EncodeToString(data))
			}),
		plain("put-records", "PutRecords speaks CBOR.",
			reliedOnBy("Java SDK v2: CBOR is its default for Kinesis"), func(c *check) {
				a, _ := c.okCBOR(putRecords, object{
					"StreamName": c.main().name,
					"Records": []object{
						{"PartitionKey": "a", "Data": []byte("x")}, {
							"PartitionKey": "b",
							"Data":         []byte{},
						},
					},
				})
				c.equal("results", len(a.list("Records")), 2)
				c.equal("ShardId", a.text("Records.1.ShardId"), shardID(1))
			}),
		plain("indefinite", "Maps, lists and strings of indefinite length are accepted.",
			reliedOnBy("Java SDK v2, which sends maps that begin with bf"), func(c *check) {
				name, err := cbor.Marshal(c.main().name)
				c.want(err == nil, "a name", err)
				body := append([]byte{0xbf, 0x6a}, "StreamName"...)
				body = append(append(body, name...), 0xff)
				a := c.send(cborBody(describeSummary, body))
				c.want(a.status == 200, "200", a.String())
			}),
		plain("time-in-request", "A time in a request is tag 1 and an integer of milliseconds.",
			quotedIn("floci#2368, bytes of the Java SDK"), func(c *check) {
				at, _ := c.reading().records[2].number("ApproximateArrivalTimestamp")
				in := object{
					"StreamName": c.reading().name, "ShardId": shardID(0),
					"ShardIteratorType": "AT_TIMESTAMP",
					"Timestamp":         cbor.Tag{Number: 1, Content: uint64(at*1000 + 0.5)},
				}
				a, _ := c.okCBOR(getShardIterator, in)
				var first object
				iterator := a.text("ShardIterator")
				c.eventually("a record can be read", func() bool {
					page := c.ok(getRecords, object{"ShardIterator": iterator, "Limit": 1})
					iterator = page.text("NextShardIterator")
					if list := page.list("Records"); len(list) > 0 {
						first = list[0]
					}
					return first != nil
				})
				c.equal("SequenceNumber", first.text("SequenceNumber"),
					c.reading().puts[2].text("SequenceNumber"))
			}),
		plain("large-blob", "A blob in CBOR has the size limit of its bytes, not of base64.",
			guess("the limit is on the record"), func(c *check) {
				c.okCBOR(putRecord, object{
					"StreamName": c.main().name, "PartitionKey": "k",
					"Data": []byte(strings.Repeat("x", 1<<20-1)),
				})
			}),
	}
}

// readOne reads the record of that number.
func (c *check) readOne(stream string, shard int, number string) (record, last object) {
	iterator := c.iterator(stream, shard, object{
		"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": number,
	})
	c.eventually("the record can be read", func() bool {
		last = c.ok(getRecords, object{"ShardIterator": iterator, "Limit": 1})
		iterator = last.text("NextShardIterator")
		if list := last.list("Records"); len(list) > 0 {
			record = list[0]
		}
		return record != nil
	})
	return record, last
}
