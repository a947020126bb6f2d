package main

import "time"

// splitScene is a stream of one shard that was split; its second child was then split too.
type splitScene struct {
	name, arn     string
	puts          []object // PutRecord into the parent before the split
	split         *answer
	updating      object  // StreamDescription right after
	twice         *answer // SplitShard while UPDATING
	during        *answer // PutRecord while UPDATING
	after         object  // StreamDescription when ACTIVE
	children      [2]object
	summary       object
	parentPuts    int      // the number of records put into the parent
	parentRecords []object // read from it
	before        []object // the GetRecords answers before the end of the parent
	end           object   // the GetRecords answer at its end
	between       float64  // a time between the two splits, in seconds since 1970
	final         object   // StreamDescription after the second split
}

// middle is 2^127, the NewStartingHashKey of the first split.
const middle = "170141183460469231731687303715884105728"

func (c *check) split() splitScene {
	return stage(c, "split", func(c *check) (s splitScene) {
		s.name = c.stream("split", object{"ShardCount": 1})
		put := func(hashKey string) *answer {
			return c.call(putRecord, object{
				"StreamName": s.name, "PartitionKey": "p", "Data": "", "ExplicitHashKey": hashKey,
			})
		}
		for range 2 {
			s.puts = append(s.puts, c.succeeded(putRecord, put("1")))
			s.parentPuts++
		}
		in := object{"StreamName": s.name, "ShardToSplit": shardID(0), "NewStartingHashKey": middle}
		s.split = c.call(splitShard, in)
		c.succeeded(splitShard, s.split)
		s.updating = c.describe(s.name)
		s.arn = s.updating.text("StreamARN")
		s.twice = c.call(splitShard, in)
		s.during = put(maxHashKey)
		if s.during.value.text("ShardId") == shardID(0) {
			s.parentPuts++
		}
		c.active(s.name)
		s.after, s.summary = c.describe(s.name), c.summary(s.name)
		for i, hashKey := range []string{"1", maxHashKey} {
			// AWS goes on putting into the parent until its clock has passed the split
			// (kinesalite test/mergeShards.js).
			c.eventually("records go to the child", func() bool {
				s.children[i] = c.succeeded(putRecord, put(hashKey))
				if s.children[i].text("ShardId") != shardID(0) {
					return true
				}
				s.parentPuts++
				return false
			})
		}
		c.drain(&s)
		c.splitAgain(&s)
		return s
	})
}

// drain reads the parent to its end.
func (c *check) drain(s *splitScene) {
	iterator := c.iterator(s.name, 0, object{"ShardIteratorType": "TRIM_HORIZON"})
	c.eventually("the parent's end comes", func() bool {
		a := c.ok(getRecords, object{"ShardIterator": iterator})
		s.parentRecords = append(s.parentRecords, a.list("Records")...)
		if iterator = a.text("NextShardIterator"); iterator == "" {
			s.end = a
			return true
		}
		s.before = append(s.before, a)
		return false
	})
}

// splitAgain splits the second child, within a second or two on a quick endpoint.
func (c *check) splitAgain(s *splitScene) {
	c.pause(20 * time.Millisecond)
	s.between = float64(time.Now().UnixMilli()) / 1000
	c.pause(20 * time.Millisecond)
	c.ok(splitShard, object{
		"StreamName": s.name, "ShardToSplit": shardID(2),
		"NewStartingHashKey": "255211775190703847597530955573826158592",
	})
	c.active(s.name)
	s.final = c.describe(s.name)
	c.equal("shards", len(s.final.list("Shards")), 5)
}
