package main

import "strings"

// mainScene is a stream of three shards that is never resharded. Any fact may put records.
type mainScene struct {
	name, arn, account string
	created            *answer // of CreateStream
	early              object  // StreamDescription right after
	again              *answer // of CreateStream once more, when ACTIVE
	description        object  // when ACTIVE
	summary            object
}

// The hash key ranges of three shards (kinesalite test/createStream.js, seen on AWS).
var thirds = [3][2]string{
	{"0", "113427455640312821154458202477256070484"},
	{"113427455640312821154458202477256070485", "226854911280625642308916404954512140969"},
	{"226854911280625642308916404954512140970", "340282366920938463463374607431768211455"},
}

const maxHashKey = "340282366920938463463374607431768211455"

func (c *check) main() mainScene {
	return stage(c, "main", func(c *check) (s mainScene) {
		defer c.mayCreate()()
		s.name, s.created = c.create("main", object{"ShardCount": 3})
		c.succeeded("CreateStream", s.created)
		s.early = c.describe(s.name)
		c.active(s.name)
		s.again = c.call("CreateStream", object{"StreamName": s.name, "ShardCount": 1})
		s.description, s.summary = c.describe(s.name), c.summary(s.name)
		c.equal("shards", len(s.description.list("Shards")), 3)
		s.arn = s.description.text("StreamARN")
		if parts := strings.Split(s.arn, ":"); len(parts) == 6 {
			s.account = parts[4]
		}
		return s
	})
}

// absent is the name of a stream that does not exist, and absentARN its ARN.
func (c *check) absent() string { return c.name("absent") }

func (c *check) absentARN() string {
	return strings.Replace(c.main().arn, c.main().name, c.absent(), 1)
}

// under is the end of messages about a stream.
func (c *check) under(stream string) string {
	return "stream " + stream + " under account " + c.main().account
}

// notFound is the message of most operations for a stream that does not exist.
func (c *check) notFound(stream string) string {
	return "Stream " + stream + " under account " + c.main().account + " not found."
}
