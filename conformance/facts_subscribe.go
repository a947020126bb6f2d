package main

import (
	"fmt"
	"regexp"
	"time"
)

const subscribeToShard = "SubscribeToShard"

// horizon is where most subscriptions begin.
var horizon = object{"Type": "TRIM_HORIZON"}

// position is a SubscribeToShard request for shard 0.
func (c *check) position(consumerARN string, start object) object {
	return object{"ConsumerARN": consumerARN, "ShardId": shardID(0), "StartingPosition": start}
}

// listen registers a new consumer and subscribes it.
func (c *check) listen(name string, start object) *subscription {
	return c.subscribe(c.position(c.consumer(c.fanOut().arn, name), start))
}

func subscribeFacts() []fact {
	all := append(subscribeStarts(), subscribeEvents()...)
	return append(all, append(subscribeRefusals(), subscribeEnds()...)...)
}

// subscribeStarts are about where a subscription begins.
func subscribeStarts() []fact {
	from := func(id, says string, source source, first int, start func(s fanOutScene) object) fact {
		return fact{
			"subscribe-to-shard/" + id, subscribeToShard, says, source, nothing, func(c *check) {
				s := c.fanOut()
				sub := c.listen("start-"+id, start(s))
				defer sub.close()
				records, _ := c.records(sub, len(s.puts)-first)
				for i, put := range s.puts[first:] {
					c.equal("SequenceNumber", records[i].text("SequenceNumber"),
						put.text("SequenceNumber"))
				}
			},
		}
	}
	at := func(kind string, put int) func(s fanOutScene) object {
		return func(s fanOutScene) object {
			return object{"Type": kind, "SequenceNumber": s.puts[put].text("SequenceNumber")}
		}
	}
	return []fact{
		from("trim-horizon", "TRIM_HORIZON begins with the oldest record.",
			localstack("test_subscribe_to_shard"), 0,
			func(fanOutScene) object { return object{"Type": "TRIM_HORIZON"} }),
		from("at-sequence-number", "AT_SEQUENCE_NUMBER begins with that record.",
			localstack("test_subscribe_to_shard_with_sequence_number_as_iterator"), 2,
			at("AT_SEQUENCE_NUMBER", 2)),
		from("after-sequence-number", "AFTER_SEQUENCE_NUMBER begins with the record behind it.",
			onPage("StartingPosition"), 3, at("AFTER_SEQUENCE_NUMBER", 2)),
		from("at-timestamp", "AT_TIMESTAMP of long ago begins with the oldest record.",
			localstack("test_subscribe_to_shard_with_at_timestamp"), 0,
			func(fanOutScene) object {
				return object{
					"Type":      "AT_TIMESTAMP",
					"Timestamp": 1718960048.0,
				}
			}),
		{
			"subscribe-to-shard/latest", subscribeToShard,
			"LATEST brings the records that are put after the call, and none older.",
			onPage("StartingPosition"), nothing, func(c *check) {
				stream := c.stream("latest", object{"ShardCount": 1})
				put := func() string {
					return c.ok(putRecord, object{
						"StreamName": stream, "PartitionKey": "p", "Data": "",
					}).text("SequenceNumber")
				}
				put()
				arn := c.consumer(c.summary(stream).text("StreamARN"), "latest")
				sub := c.subscribe(c.position(arn, object{"Type": "LATEST"}))
				defer sub.close()
				number := put()
				records, _ := c.records(sub, 1)
				c.equal("SequenceNumber", records[0].text("SequenceNumber"), number)
			},
		},
	}
}

// subscribeEvents are about the form of the events.
func subscribeEvents() []fact {
	return []fact{
		{
			"subscribe-to-shard/content-type", subscribeToShard,
			"The answer is an event stream, application/vnd.amazon.eventstream, with events in " +
				"JSON.",
			reliedOnBy("all SDKs: vnd.amazon.eventstream framing"), nothing, func(c *check) {
				sub := c.listen("content-type", horizon)
				defer sub.close()
				c.equal("Content-Type", sub.header.Get("Content-Type"),
					typeEvents)
				e := c.next(sub, c.eventTime())
				if e.name == "initial-response" {
					e = c.next(sub, c.eventTime())
				}
				c.equal("content type of the event", e.contentType, "application/json")
			},
		},
		{
			"subscribe-to-shard/initial-response", subscribeToShard,
			"The first message is initial-response.",
			reliedOnBy("event streams over RPC protocols: the Go SDK waits for it"), nothing,
			func(c *check) {
				sub := c.listen("initial", horizon)
				defer sub.close()
				e := c.next(sub, c.eventTime())
				c.equal("first message", e.kind+" "+e.name, "event initial-response")
			},
		},
		{
			"subscribe-to-shard/event-members", subscribeToShard,
			"An event has Records, ContinuationSequenceNumber and MillisBehindLatest, and no " +
				"ChildShards.",
			inModel("SubscribeToShardEvent"), nothing, func(c *check) {
				sub := c.listen("members", horizon)
				defer sub.close()
				e := c.data(sub)
				c.members(e, "Records", "ContinuationSequenceNumber", "MillisBehindLatest")
				c.matches("ContinuationSequenceNumber", e.text("ContinuationSequenceNumber"),
					`^\d+$`)
			},
		},
	}
}

// subscribeRecords are about events with records and idle events.
func subscribeRecords() []fact {
	return []fact{
		{
			"subscribe-to-shard/record-members", subscribeToShard,
			"Records are as in GetRecords, and without EncryptionType on an unencrypted stream.",
			localstack("test_subscribe_to_shard (its recorded answer)"), nothing, func(c *check) {
				sub := c.listen("record", horizon)
				defer sub.close()
				records, last := c.records(sub, len(c.fanOut().puts))
				c.members(records[0], "SequenceNumber", "ApproximateArrivalTimestamp", "Data",
					"PartitionKey")
				c.equal("MillisBehindLatest at the tip", last.at("MillisBehindLatest"), 0)
			},
		},
		{
			"subscribe-to-shard/continuation", subscribeToShard,
			"ContinuationSequenceNumber of an event goes on behind its records.",
			onPage("SubscribeToShardEvent"), nothing, func(c *check) {
				sub := c.listen("before", horizon)
				records, last := c.records(sub, len(c.fanOut().puts))
				sub.close()
				after := c.listen("after", object{
					"Type":           "AFTER_SEQUENCE_NUMBER",
					"SequenceNumber": last.text("ContinuationSequenceNumber"),
				})
				defer after.close()
				seen := map[string]bool{}
				for _, r := range records {
					seen[r.text("SequenceNumber")] = true
				}
				for _, r := range c.data(after).list("Records") {
					c.want(!seen[r.text("SequenceNumber")], "no record twice", r)
				}
			},
		},
		{
			"subscribe-to-shard/idle", subscribeToShard,
			"An idle subscription gets events without records, with a ContinuationSequenceNumber.",
			onPage("SubscribeToShardEvent"), nothing, func(c *check) {
				sub := c.listen("idle", object{"Type": "LATEST"})
				defer sub.close()
				e := c.data(sub)
				c.equal("Records", e.at("Records"), []any{})
				c.matches("ContinuationSequenceNumber", e.text("ContinuationSequenceNumber"),
					`^\d+$`)
			},
		},
	}
}

func subscribeRefusals() []fact {
	return []fact{
		{
			"subscribe-to-shard/consumer-creating", subscribeToShard,
			"A consumer that is not ACTIVE is refused with ResourceInUseException, HTTP 400.",
			quotedIn("kinesis-hot-shard-advisor#37"), nothing, func(c *check) {
				s := c.fanOut()
				if s.creating.text("ConsumerStatus") == "ACTIVE" || s.early == nil {
					c.skip("the consumer was ACTIVE before it subscribed")
				}
				c.isError(s.early, "ResourceInUseException", "")
				c.matches("message", s.early.message(),
					`^Consumer c1 with creation timestamp \d{10} `+
						`under stream: ?`+s.name+` ?, account ?:? ?`+c.main().account+` is not in `+
						`ACTIVE status\.$`)
			},
		},
		{
			"subscribe-to-shard/absent-shard", subscribeToShard,
			"A shard that the stream does not have is refused with ResourceNotFoundException, " +
				"HTTP 400.",
			inModel(subscribeToShard + ": ResourceNotFoundException"), nothing, func(c *check) {
				in := c.position(c.fanOut().arn1, object{"Type": "LATEST"})
				c.refused(subscribeToShard, in.with(object{"ShardId": shardID(7)}),
					"ResourceNotFoundException", "")
			},
		},
		{
			"subscribe-to-shard/number-of-another-shard", subscribeToShard,
			"A SequenceNumber that encodes another shard is refused as by GetShardIterator.",
			quotedIn("amazon-kinesis-client#391"), nothing, func(c *check) {
				a := c.call(subscribeToShard, c.position(c.fanOut().arn1, object{
					"Type": "AT_SEQUENCE_NUMBER", "SequenceNumber": "5",
				}))
				c.isError(a, "InvalidArgumentException",
					"Invalid StartingSequenceNumber. It encodes "+
						shardID(5)+", while it was used in a call to a shard with "+shardID(0))
			},
		},
		{
			"subscribe-to-shard/no-number", subscribeToShard,
			"AT_SEQUENCE_NUMBER without SequenceNumber is refused with InvalidArgumentException.",
			guess("as by GetShardIterator; the text is not known"), nothing, func(c *check) {
				a := c.call(subscribeToShard, c.position(c.fanOut().arn1,
					object{"Type": "AT_SEQUENCE_NUMBER"}))
				c.isError(a, "InvalidArgumentException", "")
			},
		},
		{
			"subscribe-to-shard/within-five-seconds", subscribeToShard,
			"A second call within five seconds of the first is refused with " +
				"ResourceInUseException.",
			onPage(subscribeToShard + "; text quoted in amazon-kinesis-client#391"), nothing,
			func(c *check) {
				arn := c.consumer(c.fanOut().arn, "twice")
				in := c.position(arn, object{"Type": "LATEST"})
				sub := c.subscribe(in)
				defer sub.close()
				other, refusal := c.trySubscribe(in)
				if other != nil {
					other.close()
					c.want(false, "400 ResourceInUseException", "200")
				}
				c.isError(refusal, "ResourceInUseException",
					fmt.Sprintf("Another active subscription exists for this consumer: %s:%s:%s:%s",
						c.main().account, c.fanOut().name, shardID(0), "twice"))
			},
		},
	}
}

// subscribeEnds are about how subscriptions end.
func subscribeEnds() []fact {
	ended := regexp.MustCompile(`^(end |exception ResourceInUseException)$`)
	return []fact{
		{
			"subscribe-to-shard/takeover", subscribeToShard,
			"A second call after five seconds takes over, and the first subscription ends or " +
				"fails with ResourceInUseException.",
			onPage(subscribeToShard), nothing, func(c *check) {
				arn := c.consumer(c.fanOut().arn, "takeover")
				in := c.position(arn, object{"Type": "LATEST"})
				first := c.subscribe(in)
				defer first.close()
				c.pause(5500 * time.Millisecond)
				second := c.subscribe(in)
				defer second.close()
				for {
					e := c.next(first, c.eventTime())
					if e.kind == "event" {
						continue
					}
					name := e.name
					if e.kind == "end" {
						name = ""
					}
					c.want(ended.MatchString(e.kind+" "+name), "the end or ResourceInUseException",
						e.kind+" "+e.name)
					break
				}
				c.data(second)
			},
		},
		{
			"subscribe-to-shard/shard-end", subscribeToShard,
			"A subscription lives on while the stream is UPDATING; at the shard's end an event " +
				"has the ChildShards, and the stream ends.",
			onPage("SubscribeToShardEvent"), nothing, func(c *check) {
				name := c.stream("fansplit", object{"ShardCount": 1})
				arn := c.consumer(c.summary(name).text("StreamARN"), "end")
				sub := c.subscribe(c.position(arn, object{"Type": "TRIM_HORIZON"}))
				defer sub.close()
				c.ok(splitShard, object{
					"StreamName": name, "ShardToSplit": shardID(0), "NewStartingHashKey": middle,
				})
				var e object
				for deadline := time.Now().Add(c.patience()); ; {
					if e = c.data(sub); e.has("ChildShards") && len(e.list("ChildShards")) > 0 {
						break
					}
					c.want(time.Now().Before(deadline), "an event with ChildShards", e)
				}
				children := e.list("ChildShards")
				c.equal("children", len(children), 2)
				c.members(children[0], "ShardId", "ParentShards", "HashKeyRange")
				last := c.next(sub, c.eventTime())
				c.equal("then", last.kind, "end")
			},
		},
	}
}

// subscribeLife is about how long a subscription lives.
func subscribeLife() []fact {
	return []fact{
		{
			"subscribe-to-shard/five-minutes", subscribeToShard,
			"A subscription ends by itself after five minutes.",
			onPage(subscribeToShard), patience, func(c *check) {
				sub := c.listen("long", object{"Type": "LATEST"})
				defer sub.close()
				began := time.Now()
				for {
					e := c.next(sub, 6*time.Minute)
					if e.kind != "event" {
						c.equal("the end", e.kind, "end")
						break
					}
				}
				lived := time.Since(began)
				c.want(lived > 290*time.Second && lived < 320*time.Second, "about 300 s",
					lived.Round(time.Second).String())
			},
		},
	}
}
