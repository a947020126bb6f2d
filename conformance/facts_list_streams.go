package main

import "slices"

const listStreams = "ListStreams"

func listStreamsFacts() []fact {
	// before is a name that ListStreams begins after to find the main stream first.
	before := func(c *check) string { return c.main().name[:len(c.main().name)-1] }
	return []fact{
		{
			"list-streams/members", listStreams,
			"The answer has StreamNames, HasMoreStreams and StreamSummaries.",
			onPage(listStreams), nothing, func(c *check) {
				page := c.ok(listStreams, object{"ExclusiveStartStreamName": before(c), "Limit": 1})
				c.contains(page, "StreamNames", "HasMoreStreams", "StreamSummaries")
			},
		},
		{
			"list-streams/after", listStreams,
			"ExclusiveStartStreamName begins after that name, whether it is there or not.",
			kinesalite("listStreams"), nothing, func(c *check) {
				page := c.ok(listStreams, object{"ExclusiveStartStreamName": before(c), "Limit": 1})
				c.equal("StreamNames", page.texts("StreamNames"), []string{c.main().name})
			},
		},
		{
			"list-streams/sorted", listStreams, "Names come in order.",
			guess("ExclusiveStartStreamName means little otherwise"), nothing, func(c *check) {
				_ = c.main()
				names := c.ok(listStreams, object{}).texts("StreamNames")
				c.want(len(names) > 0, "names", names)
				c.want(slices.IsSorted(names), "sorted names", names)
			},
		},
		{
			"list-streams/summary", listStreams,
			"A StreamSummary has the name, the ARN, the status, the mode and the creation time.",
			inModel("StreamSummary"), nothing, func(c *check) {
				page := c.ok(listStreams, object{"ExclusiveStartStreamName": before(c), "Limit": 1})
				summaries := page.list("StreamSummaries")
				c.equal("summaries", len(summaries), 1)
				c.contains(summaries[0], "StreamName", "StreamARN", "StreamStatus",
					"StreamModeDetails", "StreamCreationTimestamp")
				c.equal("StreamARN", summaries[0].text("StreamARN"), c.main().arn)
				c.equal("StreamStatus", summaries[0].text("StreamStatus"), "ACTIVE")
			},
		},
	}
}

// listStreamsPages are about pages.
func listStreamsPages() []fact {
	return []fact{
		{
			"list-streams/token", listStreams,
			"A page with more behind it has a NextToken, which leads to the next.",
			onPage(listStreams), nothing, func(c *check) {
				_, _ = c.main(), c.reading() // two streams at least
				first := c.ok(listStreams, object{"Limit": 1})
				c.equal("HasMoreStreams", first.at("HasMoreStreams"), true)
				c.want(first.text("NextToken") != "", "a NextToken", first)
				second := c.ok(listStreams, object{
					"Limit":     1,
					"NextToken": first.text("NextToken"),
				})
				c.want(second.text("StreamNames.0") > first.text("StreamNames.0"), "a later name",
					second.texts("StreamNames"))
			},
		},
		{
			"list-streams/last-page", listStreams, "The last page has no NextToken.",
			onPage(listStreams), nothing, func(c *check) {
				last := c.ok(listStreams, object{"ExclusiveStartStreamName": "zzzzzzzzzzzzzzzz"})
				c.equal("HasMoreStreams", last.at("HasMoreStreams"), false)
				c.want(!last.has("NextToken"), "no NextToken", last)
			},
		},
		{
			"list-streams/bad-token", listStreams,
			"An invalid NextToken is refused with InvalidArgumentException.",
			guess("the reference has InvalidArgumentException and ExpiredNextTokenException"),
			nothing,
			func(c *check) {
				c.refused(listStreams, object{"NextToken": "nonsense"}, "InvalidArgumentException",
					"")
			},
		},
	}
}
