package main

import "bytes"

const updateMaxRecordSize = "UpdateMaxRecordSize"

// sizedScene is the settings stream after UpdateMaxRecordSize.
type sizedScene struct {
	answer *answer
	after  object
	large  *answer // PutRecord of 3 MiB
}

func (c *check) sized() sizedScene {
	return stage(c, "record size", func(c *check) (s sizedScene) {
		name := c.settings().name
		defer c.alone()()
		s.answer = c.call(updateMaxRecordSize, object{
			"StreamARN": c.settings().arn, "MaxRecordSizeInKiB": 4096,
		})
		c.active(name)
		s.after = c.summary(name)
		s.large = c.call(putRecord, object{
			"StreamName": name, "PartitionKey": "p",
			"Data": base64Of(bytes.Repeat([]byte{'x'}, 3<<20)),
		})
		return s
	})
}

func recordSizeFacts() []fact {
	return []fact{
		{
			"update-max-record-size/works", updateMaxRecordSize,
			"The answer is 200 with an empty body, and the summary has the new size.",
			onPage(updateMaxRecordSize), nothing, func(c *check) {
				a := c.sized().answer
				c.want(a.status == 200 && len(a.body) == 0, "200, empty body", a.String())
				c.equal("MaxRecordSizeInKiB", c.sized().after.at("MaxRecordSizeInKiB"), 4096)
			},
		},
		{
			"update-max-record-size/larger-records", putRecord,
			"Records of up to the new size are accepted.",
			onPage(updateMaxRecordSize), nothing, func(c *check) {
				c.want(c.sized().large.status == 200 ||
					c.sized().large.code() == "ProvisionedThroughputExceededException",
					"200 (or a throttled 400)", c.sized().large.String())
			},
		},
	}
}
