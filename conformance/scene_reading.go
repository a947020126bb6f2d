package main

import "time"

// readingScene is a stream of one shard with four records. Facts add no others.
type readingScene struct {
	name, arn string
	start     string   // the shard's StartingSequenceNumber
	puts      []object // the answers of PutRecord
	records   []object // as read from TRIM_HORIZON
	last      object   // the GetRecords answer that had the last record
}

// readingData is the data of the reading scene's records.
var readingData = []string{"", "test", "ünicödé 统一码 💣💻🔥", "last"}

func (c *check) reading() readingScene {
	return stage(c, "reading", func(c *check) (s readingScene) {
		s.name = c.stream("reading", object{"ShardCount": 1})
		description := c.describe(s.name)
		s.arn = description.text("StreamARN")
		s.start = description.text("Shards.0.SequenceNumberRange.StartingSequenceNumber")
		for i, data := range readingData {
			if i > 0 {
				c.pause(30 * time.Millisecond) // so that their arrival times differ
			}
			s.puts = append(s.puts, c.ok(putRecord, object{
				"StreamName": s.name, "PartitionKey": "key " + data, "Data": base64Of([]byte(data)),
			}))
		}
		s.records, s.last = c.read(c.iterator(s.name, 0,
			object{"ShardIteratorType": "TRIM_HORIZON"}),
			len(readingData))
		return s
	})
}

// iterator returns a shard iterator.
func (c *check) iterator(stream string, shard int, members object) string {
	a := c.ok(getShardIterator, object{
		"StreamName": stream,
		"ShardId":    shardID(shard),
	}.with(members))
	c.want(a.text("ShardIterator") != "", "a ShardIterator", a)
	return a.text("ShardIterator")
}

// read reads from an iterator until it has n records. last is the last answer.
func (c *check) read(iterator string, n int) (records []object, last object) {
	c.eventually("the records can be read", func() bool {
		last = c.ok(getRecords, object{"ShardIterator": iterator})
		records = append(records, last.list("Records")...)
		next := last.text("NextShardIterator")
		if next != "" {
			iterator = next
		}
		return len(records) >= n || next == ""
	})
	c.equal("records", len(records), n)
	return records, last
}

// firstFrom returns the first record from a position in the reading scene.
func (c *check) firstFrom(members object) object {
	var first object
	iterator := c.iterator(c.reading().name, 0, members)
	c.eventually("a record can be read", func() bool {
		a := c.ok(getRecords, object{"ShardIterator": iterator, "Limit": 1})
		iterator = a.text("NextShardIterator")
		if list := a.list("Records"); len(list) > 0 {
			first = list[0]
		}
		return first != nil
	})
	return first
}
