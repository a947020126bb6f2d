package main

const (
	tagResource         = "TagResource"
	untagResource       = "UntagResource"
	listTagsForResource = "ListTagsForResource"
)

func resourceTagFacts() []fact {
	// works tags a resource, reads, removes one of two, and reads.
	works := func(c *check, arn string) {
		a := c.call(tagResource, object{"ResourceARN": arn, "Tags": object{"one": "1", "two": ""}})
		c.want(a.status == 200 && len(a.body) == 0, "200, empty body", a.String())
		tags := tagsOf(c.ok(listTagsForResource, object{"ResourceARN": arn}))
		c.want(tags.text("one") == "1" && tags.has("two"), "both tags", tags)
		a = c.call(untagResource, object{"ResourceARN": arn, "TagKeys": []string{"one", "three"}})
		c.want(a.status == 200 && len(a.body) == 0, "200, empty body", a.String())
		tags = tagsOf(c.ok(listTagsForResource, object{"ResourceARN": arn}))
		c.want(!tags.has("one") && tags.has("two"), "two alone", tags)
	}
	return []fact{
		{
			"tag-resource/stream", tagResource, "A stream can be tagged and untagged by its ARN.",
			onPage(tagResource), nothing, func(c *check) { works(c, c.main().arn) },
		},
		{
			"tag-resource/consumer", tagResource, "A consumer can be tagged and untagged by its " +
				"ARN.",
			onPage(tagResource), nothing, func(c *check) { works(c, c.fanOut().arn1) },
		},
		{
			"tag-resource/same-tags", listTagsForStream,
			"ListTagsForStream lists the tags of TagResource.",
			onPage("Developer Guide: Tag your streams"), nothing, func(c *check) {
				c.ok(tagResource, object{
					"ResourceARN": c.reading().arn,
					"Tags":        object{"seen": "by both"},
				})
				tags := tagsOf(c.ok(listTagsForStream, object{"StreamName": c.reading().name}))
				c.equal("seen", tags.text("seen"), "by both")
			},
		},
		{
			"register-stream-consumer/tags", listTagsForResource,
			"A consumer has the tags that it was registered with.",
			onPage("RegisterStreamConsumer"), nothing, func(c *check) {
				c.equal("born", c.fanOut().born.text("born"), "so")
			},
		},
	}
}
