package main

const (
	registerConsumer   = "RegisterStreamConsumer"
	deregisterConsumer = "DeregisterStreamConsumer"
	describeConsumer   = "DescribeStreamConsumer"
	listConsumers      = "ListStreamConsumers"
)

// fanOutScene is a stream of one shard with records and with consumer c1. Each fact about a
// subscription registers another consumer.
type fanOutScene struct {
	name, arn  string
	registered *answer // of consumer c1
	early      *answer // SubscribeToShard while it is CREATING
	creating   object  // its ConsumerDescription right after
	twice      *answer // RegisterStreamConsumer once more
	arn1       string
	described  object // ConsumerDescription when ACTIVE
	born       object // its first tags
	puts       []object
	summary    object
}

func (c *check) fanOut() fanOutScene {
	return stage(c, "fan-out", func(c *check) (s fanOutScene) {
		s.name = c.stream("fanout", object{"ShardCount": 1})
		s.arn = c.summary(s.name).text("StreamARN")
		for range 5 {
			s.puts = append(s.puts, c.ok(putRecord, object{
				"StreamName": s.name, "PartitionKey": "p", "Data": base64Of([]byte("fan")),
			}))
			c.pause(c.poll())
		}
		in := object{"StreamARN": s.arn, "ConsumerName": "c1", "Tags": object{"born": "so"}}
		s.registered = c.call(registerConsumer, in)
		c.succeeded(registerConsumer, s.registered)
		s.arn1 = s.registered.value.text("Consumer.ConsumerARN")
		c.want(s.arn1 != "", "a ConsumerARN", s.registered.String())
		sub, refusal := c.trySubscribe(c.position(s.arn1, object{"Type": "LATEST"}))
		if sub != nil {
			sub.close()
		}
		s.early = refusal
		s.creating = c.consumerAt(s.arn1)
		s.twice = c.call(registerConsumer, in)
		c.joined(s.arn1)
		s.described = c.consumerAt(s.arn1)
		s.born = tagsOf(c.call(listTagsForResource, object{"ResourceARN": s.arn1}).value)
		s.summary = c.summary(s.name)
		return s
	})
}

// consumer registers a consumer, waits until it is ACTIVE and returns its ARN.
func (c *check) consumer(streamARN, name string) string {
	c.joining <- struct{}{} // AWS allows five in CREATING
	defer func() { <-c.joining }()
	a := c.ok(registerConsumer, object{"StreamARN": streamARN, "ConsumerName": name})
	arn := a.text("Consumer.ConsumerARN")
	c.want(arn != "", "a ConsumerARN", a)
	c.joined(arn)
	return arn
}

// joined waits until a consumer is ACTIVE.
func (c *check) joined(arn string) {
	c.eventually("the consumer becomes ACTIVE", func() bool {
		return c.consumerAt(arn).text("ConsumerStatus") == "ACTIVE"
	})
}

// consumerAt returns a ConsumerDescription.
func (c *check) consumerAt(arn string) object {
	a := c.ok(describeConsumer, object{"ConsumerARN": arn})
	description, ok := a.at("ConsumerDescription").(map[string]any)
	c.want(ok, "a ConsumerDescription", a)
	return description
}

func consumerFacts() []fact {
	return append(consumerLists(), []fact{
		{
			"register-stream-consumer/members", registerConsumer,
			"The answer has the consumer's name, ARN, status and creation time.",
			inModel("Consumer"), nothing, func(c *check) {
				consumer, _ := c.fanOut().registered.value.at("Consumer").(map[string]any)
				c.members(consumer, "ConsumerName", "ConsumerARN", "ConsumerStatus",
					"ConsumerCreationTimestamp")
				c.equal("ConsumerStatus", object(consumer).text("ConsumerStatus"), "CREATING")
			},
		},
		{
			"register-stream-consumer/arn", registerConsumer,
			"The ARN is the stream's, /consumer/, the name, a colon and the second of its " +
				"creation.",
			inModel("ConsumerARN"), nothing, func(c *check) {
				c.matches("ConsumerARN", c.fanOut().arn1, "^"+c.fanOut().arn+`/consumer/c1:\d{10}$`)
			},
		},
		{
			"register-stream-consumer/exists", registerConsumer,
			"A name that is taken is refused with ResourceInUseException.",
			inModel(registerConsumer + ": ResourceInUseException"), nothing, func(c *check) {
				c.isError(c.fanOut().twice, "ResourceInUseException", "")
			},
		},
		{
			"register-stream-consumer/again", registerConsumer,
			"A consumer that is deregistered and registered again gets another ARN.",
			quotedIn("serverless#5510"), nothing, func(c *check) {
				first := c.consumer(c.fanOut().arn, "again")
				c.ok(deregisterConsumer, object{"ConsumerARN": first})
				c.departed(first)
				c.want(c.consumer(c.fanOut().arn, "again") != first, "another ARN", first)
			},
		},
	}...)
}

// consumerLives are about registered consumers and their deregistration.
func consumerLives() []fact {
	return []fact{
		{
			"describe-stream-consumer/members", describeConsumer,
			"A ConsumerDescription also has the stream's ARN.",
			localstack("test_stream_consumers"), nothing, func(c *check) {
				c.members(c.fanOut().described, "ConsumerName", "ConsumerARN", "ConsumerStatus",
					"ConsumerCreationTimestamp", "StreamARN")
				c.equal("ConsumerStatus", c.fanOut().described.text("ConsumerStatus"), "ACTIVE")
				c.equal("StreamARN", c.fanOut().described.text("StreamARN"), c.fanOut().arn)
			},
		},
		{
			"describe-stream-consumer/by-name", describeConsumer,
			"A consumer may be named by StreamARN and ConsumerName.",
			onPage(describeConsumer), nothing, func(c *check) {
				a := c.ok(describeConsumer, object{
					"StreamARN":    c.fanOut().arn,
					"ConsumerName": "c1",
				})
				c.equal("ConsumerARN", a.text("ConsumerDescription.ConsumerARN"), c.fanOut().arn1)
			},
		},
		{
			"describe-stream-consumer/unnamed", describeConsumer,
			"StreamARN alone names no consumer: InvalidArgumentException.",
			guess("the reference wants both; the error is the only one that fits"), nothing,
			func(c *check) {
				c.refused(describeConsumer, object{"StreamARN": c.main().arn},
					"InvalidArgumentException", "")
			},
		},
		{
			"deregister-stream-consumer/works", deregisterConsumer,
			"The answer is 200 with an empty body; the consumer is DELETING and then not found.",
			onPage(deregisterConsumer), nothing, func(c *check) {
				arn := c.consumer(c.fanOut().arn, "leaving")
				a := c.call(deregisterConsumer, object{
					"StreamARN": c.fanOut().arn, "ConsumerName": "leaving",
				})
				c.want(a.status == 200 && len(a.body) == 0, "200, empty body", a.String())
				c.departed(arn)
			},
		},
	}
}

// departed waits until a consumer is gone. Until then its only status may be DELETING.
func (c *check) departed(arn string) {
	c.eventually("the consumer is gone", func() bool {
		a := c.call(describeConsumer, object{"ConsumerARN": arn})
		if a.status == 200 {
			c.equal("ConsumerStatus", a.value.text("ConsumerDescription.ConsumerStatus"),
				"DELETING")
			return false
		}
		c.isError(a, "ResourceNotFoundException", "")
		return true
	})
}

func consumerLists() []fact {
	return []fact{
		{
			"list-stream-consumers/members", listConsumers,
			"A listed consumer has name, ARN, status and creation time, and no stream.",
			localstack("test_stream_consumers"), nothing, func(c *check) {
				_ = c.fanOut()
				for _, consumer := range c.ok(listConsumers, object{"StreamARN": c.fanOut().arn}).
					list("Consumers") {
					c.members(consumer, "ConsumerName", "ConsumerARN", "ConsumerStatus",
						"ConsumerCreationTimestamp")
				}
			},
		},
		{
			"list-stream-consumers/none", listConsumers, "No consumers are an empty list.",
			localstack("test_stream_consumers"), nothing, func(c *check) {
				a := c.ok(listConsumers, object{"StreamARN": c.main().arn})
				c.members(a, "Consumers")
				c.equal("Consumers", a.at("Consumers"), []any{})
			},
		},
		{
			"list-stream-consumers/pages", listConsumers,
			"MaxResults cuts the list, and NextToken leads on.",
			onPage(listConsumers), nothing, func(c *check) {
				c.consumer(c.fanOut().arn, "second")
				first := c.ok(listConsumers, object{"StreamARN": c.fanOut().arn, "MaxResults": 1})
				c.equal("consumers", len(first.list("Consumers")), 1)
				c.want(first.text("NextToken") != "", "a NextToken", first)
				rest := c.ok(listConsumers, object{
					"StreamARN": c.fanOut().arn, "NextToken": first.text("NextToken"),
				})
				c.want(len(rest.list("Consumers")) > 0, "more consumers", rest)
				for _, consumer := range rest.list("Consumers") {
					c.want(consumer.text("ConsumerARN") != first.text("Consumers.0.ConsumerARN"),
						"no consumer twice", rest)
				}
			},
		},
		{
			"list-stream-consumers/count", describeSummary,
			"ConsumerCount of the stream's summary counts them.",
			onPage("StreamDescriptionSummary"), nothing, func(c *check) {
				n, ok := c.fanOut().summary.number("ConsumerCount")
				c.want(ok && n >= 1, "1 or more", c.fanOut().summary.at("ConsumerCount"))
			},
		},
	}
}
