package main

import "time"

const (
	startEncryption = "StartStreamEncryption"
	stopEncryption  = "StopStreamEncryption"
	managedKey      = "alias/aws/kinesis"
)

// encryptedScene is a stream that was encrypted and decrypted again.
type encryptedScene struct {
	start, stop       *answer
	updating, on, off object // summaries
	put               object // PutRecord while on
	record            object // as it was read
	noneStart         *answer
}

func (c *check) encrypted() encryptedScene {
	return stage(c, "encryption", func(c *check) (s encryptedScene) {
		name := c.settings().name
		defer c.alone()()
		in := object{"StreamName": name, "EncryptionType": "KMS", "KeyId": managedKey}
		s.noneStart = c.call(startEncryption, in.with(object{"EncryptionType": "NONE"}))
		s.start = c.call(startEncryption, in)
		c.succeeded(startEncryption, s.start)
		s.updating = c.summary(name)
		c.active(name)
		s.on = c.summary(name)
		put := func() object {
			return c.ok(putRecord, object{"StreamName": name, "PartitionKey": "p", "Data": ""})
		}
		// It can take five seconds until all records are encrypted (API reference).
		for deadline := time.Now().Add(min(6*time.Second, c.patience())); ; c.pause(c.poll()) {
			s.put = put()
			if s.put.text("EncryptionType") == "KMS" || time.Now().After(deadline) {
				break
			}
		}
		records, _ := c.read(c.iterator(name, 0, object{
			"ShardIteratorType":      "AT_SEQUENCE_NUMBER",
			"StartingSequenceNumber": s.put.text("SequenceNumber"),
		}), 1)
		s.record = records[0]
		s.stop = c.call(stopEncryption, in)
		c.active(name)
		s.off = c.summary(name)
		return s
	})
}

func encryptionFacts() []fact {
	return []fact{
		{
			"start-stream-encryption/updating", startEncryption,
			"The answer is 200 with an empty body, and the stream is UPDATING.",
			onPage(startEncryption), nothing, func(c *check) {
				c.equal("body", string(c.encrypted().start.body), "")
				if c.encrypted().updating.text("StreamStatus") == "ACTIVE" {
					c.skip("the stream was ACTIVE before it was looked at")
				}
				c.equal("StreamStatus", c.encrypted().updating.text("StreamStatus"), "UPDATING")
			},
		},
		{
			"start-stream-encryption/described", describeSummary,
			"An encrypted stream's descriptions have EncryptionType KMS and a KeyId.",
			onPage("StreamDescriptionSummary"), nothing, func(c *check) {
				c.equal("EncryptionType", c.encrypted().on.text("EncryptionType"), "KMS")
				c.want(c.encrypted().on.text("KeyId") != "", "a KeyId", c.encrypted().on)
			},
		},
		{
			"start-stream-encryption/put", putRecord, "PutRecord answers with EncryptionType KMS " +
				"then.",
			onPage(startEncryption), nothing, func(c *check) {
				c.equal("EncryptionType", c.encrypted().put.text("EncryptionType"), "KMS")
			},
		},
		{
			"start-stream-encryption/record", getRecords,
			"A record that was encrypted has EncryptionType KMS.",
			onPage("Record"), nothing, func(c *check) {
				c.equal("EncryptionType", c.encrypted().record.text("EncryptionType"), "KMS")
			},
		},
		{
			"start-stream-encryption/none", startEncryption,
			"EncryptionType NONE is refused with InvalidArgumentException or ValidationException.",
			guess("the reference says that KMS is the only valid value, not the error"), nothing,
			func(c *check) {
				c.isRefusal(c.encrypted().noneStart)
			},
		},
		{
			"stop-stream-encryption/works", stopEncryption,
			"The answer is 200 with an empty body, and the stream is unencrypted, without a KeyId.",
			onPage(stopEncryption), nothing, func(c *check) {
				a := c.encrypted().stop
				c.want(a.status == 200 && len(a.body) == 0, "200, empty body", a.String())
				c.equal("EncryptionType", c.encrypted().off.text("EncryptionType"), "NONE")
				c.want(!c.encrypted().off.has("KeyId"), "no KeyId", c.encrypted().off.at("KeyId"))
			},
		},
	}
}
