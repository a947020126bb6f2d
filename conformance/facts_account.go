package main

import "slices"

const (
	describeLimits  = "DescribeLimits"
	describeAccount = "DescribeAccountSettings"
	updateAccount   = "UpdateAccountSettings"
	commitment      = "MinimumThroughputBillingCommitment"
	commitmentPath  = commitment + ".Status"
)

// accountScene has the account's settings before and after two changes.
type accountScene struct {
	first             object
	enabled, disabled object // of UpdateAccountSettings
}

func (c *check) account() accountScene {
	return stage(c, "account", func(c *check) (s accountScene) {
		// The commitment changes the rights of on-demand streams, so their scene is built first.
		func() {
			defer func() { _ = recover() }() // an endpoint may lack on-demand streams
			_ = c.demand()
		}()
		s.first = c.ok(describeAccount, object{})
		if s.first.text(commitmentPath) != "DISABLED" {
			panic(skipped{"the account has a billing commitment already"})
		}
		ask := func(status string) object {
			return c.ok(updateAccount, object{
				commitment: object{"Status": status},
			})
		}
		s.enabled = ask("ENABLED")
		s.disabled = ask("DISABLED")
		return s
	})
}

// billing is the account's billing commitment when the run began.
func (c *check) billing() string {
	return stage(c, "commitment", func(c *check) string {
		return c.ok(describeAccount, object{}).text(commitmentPath)
	})
}

func accountFacts() []fact {
	return []fact{
		{
			"describe-limits/members", describeLimits,
			"The answer has the shards and the on-demand streams, each with its limit.",
			inModel(describeLimits), nothing, func(c *check) {
				c.members(c.ok(describeLimits, object{}), "ShardLimit", "OpenShardCount",
					"OnDemandStreamCount",
					"OnDemandStreamCountLimit")
			},
		},
		{
			"describe-limits/counts", describeLimits, "On-demand streams are counted.",
			onPage(describeLimits), nothing, func(c *check) {
				n, ok := c.demand().limits.number("OnDemandStreamCount")
				c.want(ok && n >= 1, "1 or more", c.demand().limits)
			},
		},
		{
			"describe-account-settings/members", describeAccount,
			"The answer has a MinimumThroughputBillingCommitment with one of three states.",
			inModel(describeAccount), nothing, func(c *check) {
				states := []string{"ENABLED", "DISABLED", "ENABLED_UNTIL_EARLIEST_ALLOWED_END"}
				c.want(slices.Contains(states, c.billing()), show(states), c.billing())
			},
		},
		{
			"describe-account-settings/off", describeAccount,
			"An account without a commitment has DISABLED, without times.",
			guess("the model has the times optional"), freeBilling, func(c *check) {
				c.members(c.account().first.object(commitment), "Status")
			},
		},
		{
			"update-account-settings/enable", updateAccount,
			"An enabled commitment has its start time and its earliest end time.",
			inModel("MinimumThroughputBillingCommitmentOutput"), freeBilling, func(c *check) {
				now := c.account().enabled.object(commitment)
				c.equal("Status", now.text("Status"), "ENABLED")
				c.contains(now, "StartedAt", "EarliestAllowedEndAt")
			},
		},
		{
			"update-account-settings/disable", updateAccount,
			"A commitment disabled before its earliest end stays enabled until then.",
			inModel("MinimumThroughputBillingCommitmentOutputStatus"), freeBilling, func(c *check) {
				c.equal("Status", c.account().disabled.text(commitmentPath),
					"ENABLED_UNTIL_EARLIEST_ALLOWED_END")
			},
		},
	}
}
