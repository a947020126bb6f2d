package main

const (
	increaseRetention = "IncreaseStreamRetentionPeriod"
	decreaseRetention = "DecreaseStreamRetentionPeriod"
)

// retentionScene has the answers of the retention operations, in that order.
type retentionScene struct {
	same, longer                 *answer // increase to 24, then to 25
	up                           object  // summary at 25
	longerThanNow, shorterByName *answer // decrease to 26, increase to 24
	shorter                      *answer // decrease to 24
	down                         object
}

func (c *check) retention() retentionScene {
	return stage(c, "retention", func(c *check) (s retentionScene) {
		name := c.settings().name
		defer c.alone()()
		ask := func(op string, hours int) *answer {
			a := c.call(op, object{"StreamName": name, "RetentionPeriodHours": hours})
			c.active(name)
			return a
		}
		s.same = ask(increaseRetention, 24)
		s.longer = ask(increaseRetention, 25)
		s.up = c.summary(name)
		s.longerThanNow = ask(decreaseRetention, 26)
		s.shorterByName = ask(increaseRetention, 24)
		s.shorter = ask(decreaseRetention, 24)
		s.down = c.summary(name)
		return s
	})
}

func retentionFacts() []fact {
	refused := func(id, op, says, text string, hours int) fact {
		return fact{id, op, says, kinesalite(map[string]string{
			increaseRetention: "increaseStreamRetentionPeriod",
			decreaseRetention: "decreaseStreamRetentionPeriod",
		}[op]), nothing, func(c *check) {
			c.refused(op, object{"StreamName": c.main().name, "RetentionPeriodHours": hours},
				"InvalidArgumentException", text)
		}}
	}
	short := "Minimum allowed retention period is 24 hours. Requested retention period (23 " +
		"hours) is too short."
	return []fact{
		refused("increase-retention/too-short", increaseRetention,
			"Less than 24 hours are refused.",
			short, 23),
		refused("decrease-retention/too-short", decreaseRetention,
			"Less than 24 hours are refused.",
			short, 23),
		{
			"increase-retention/too-long", increaseRetention,
			"More than 8760 hours are refused; the text is of the time when the limit was 168.",
			kinesalite("increaseStreamRetentionPeriod"), nothing, func(c *check) {
				c.refused(increaseRetention, object{
					"StreamName": c.main().name, "RetentionPeriodHours": 8761,
				}, "InvalidArgumentException", "Maximum allowed retention period is 8760 hours. "+
					"Requested retention period (8761 hours) is too long.")
			},
		},
	}
}

// retentionChanges are about successful changes, in their order.
func retentionChanges() []fact {
	return []fact{
		{
			"increase-retention/works", increaseRetention,
			"The answer is 200 with an empty body, and descriptions have the new period.",
			kinesalite("increaseStreamRetentionPeriod"), nothing, func(c *check) {
				a := c.retention().longer
				c.want(a.status == 200 && len(a.body) == 0, "200, empty body", a.String())
				c.equal("RetentionPeriodHours", c.retention().up.at("RetentionPeriodHours"), 25)
			},
		},
		{
			"increase-retention/same", increaseRetention,
			"The period that the stream has is taken.",
			reliedOnBy("Terraform's AWS provider (floci#352)"), nothing, func(c *check) {
				c.equal("status", c.retention().same.status, 200)
			},
		},
		{
			"increase-retention/shorter", increaseRetention, "A shorter period is refused.",
			kinesalite("increaseStreamRetentionPeriod"), nothing, func(c *check) {
				c.isError(c.retention().shorterByName, "InvalidArgumentException",
					"Requested retention "+
						"period (24 hours) for stream "+c.settings().name+" can not be shorter "+
						"than "+
						"existing "+
						"retention period (25 hours). Use DecreaseRetentionPeriod API.")
			},
		},
		{
			"decrease-retention/longer", decreaseRetention, "A longer period is refused.",
			kinesalite("decreaseStreamRetentionPeriod"), nothing, func(c *check) {
				c.isError(c.retention().longerThanNow, "InvalidArgumentException",
					"Requested retention "+
						"period (26 hours) for stream "+c.settings().name+" can not be longer "+
						"than "+
						"existing "+
						"retention period (25 hours). Use IncreaseRetentionPeriod API.")
			},
		},
		{
			"decrease-retention/works", decreaseRetention,
			"The answer is 200 with an empty body, and descriptions have the new period.",
			kinesalite("decreaseStreamRetentionPeriod"), nothing, func(c *check) {
				a := c.retention().shorter
				c.want(a.status == 200 && len(a.body) == 0, "200, empty body", a.String())
				c.equal("RetentionPeriodHours", c.retention().down.at("RetentionPeriodHours"), 24)
			},
		},
	}
}
