package main

const deleteStream = "DeleteStream"

// recreatedScene is a stream that was deleted, and a later one of the same name.
type recreatedScene struct {
	name     string
	deleted  *answer
	deleting *answer // of DescribeStream
	stale    *answer // GetRecords with an iterator of the deleted stream
	resumed  *answer // the same GetRecords again
}

func (c *check) recreated() recreatedScene {
	return stage(c, "recreated", func(c *check) (s recreatedScene) {
		s.name = c.stream("deleted", object{"ShardCount": 1})
		iterator := c.iterator(s.name, 0, object{"ShardIteratorType": "LATEST"})
		s.deleted = c.call(deleteStream, object{"StreamName": s.name})
		c.succeeded(deleteStream, s.deleted)
		s.deleting = c.call(describeStream, object{"StreamName": s.name})
		c.gone(s.name)
		s.stale = c.call(getRecords, object{"ShardIterator": iterator})
		c.stream("deleted", object{"ShardCount": 1})
		s.resumed = c.call(getRecords, object{"ShardIterator": iterator})
		return s
	})
}

func deleteFacts() []fact {
	return []fact{
		{
			"delete-stream/deleting", deleteStream,
			"The answer is 200 with an empty body, and the stream is DELETING.",
			kinesalite("deleteStream"), nothing, func(c *check) {
				c.equal("body", string(c.recreated().deleted.body), "")
				a := c.recreated().deleting
				if a.code() == "ResourceNotFoundException" {
					c.skip("the stream was gone before it was looked at")
				}
				c.equal("StreamStatus", a.value.text("StreamDescription.StreamStatus"), "DELETING")
			},
		},
		{
			"delete-stream/creating", deleteStream, "A stream that is CREATING can be deleted.",
			kinesalite("deleteStream"), nothing, func(c *check) {
				defer c.mayCreate()()
				name, created := c.create("unborn", object{"ShardCount": 1})
				c.succeeded(createStream, created)
				c.ok(deleteStream, object{"StreamName": name})
			},
		},
		{
			"delete-stream/iterator", getRecords,
			"An iterator of a deleted stream finds no shard.",
			kinesalite("getRecords"), nothing, func(c *check) {
				c.isError(c.recreated().stale, "ResourceNotFoundException",
					"Shard "+shardID(0)+" in "+
						c.under(c.recreated().name)+" does not exist")
			},
		},
		{
			"delete-stream/iterator-of-namesake", getRecords,
			"An iterator of a deleted stream reads a later stream of the same name.",
			kinesalite("getRecords"), nothing, func(c *check) {
				a := c.succeeded(getRecords, c.recreated().resumed)
				c.equal("Records", a.at("Records"), []any{})
				c.want(a.text("NextShardIterator") != "", "a NextShardIterator", a)
			},
		},
		{
			"delete-stream/consumers", deleteStream,
			"A stream with a consumer is refused with ResourceInUseException.",
			onPage(deleteStream), nothing, func(c *check) {
				c.isError(c.enforced().refused, "ResourceInUseException", "")
			},
		},
		{
			"delete-stream/enforce", deleteStream,
			"EnforceConsumerDeletion deletes the consumers with it.",
			onPage(deleteStream), nothing, func(c *check) {
				c.succeeded(deleteStream, c.enforced().taken)
			},
		},
	}
}

// enforcedScene is a stream with a consumer that was deleted.
type enforcedScene struct{ refused, taken *answer }

func (c *check) enforced() enforcedScene {
	return stage(c, "enforced", func(c *check) (s enforcedScene) {
		name := c.stream("enforced", object{"ShardCount": 1})
		c.consumer(c.summary(name).text("StreamARN"), "one")
		s.refused = c.call(deleteStream, object{"StreamName": name})
		s.taken = c.call(deleteStream, object{"StreamName": name, "EnforceConsumerDeletion": true})
		return s
	})
}
