package main

const (
	enableMonitoring  = "EnableEnhancedMonitoring"
	disableMonitoring = "DisableEnhancedMonitoring"
)

// monitoredScene has the answers of the monitoring operations, in that order.
type monitoredScene struct {
	enabled, disabled *answer
	on, off           object // summaries
}

func (c *check) monitored() monitoredScene {
	return stage(c, "monitoring", func(c *check) (s monitoredScene) {
		name := c.settings().name
		defer c.alone()()
		s.enabled = c.call(enableMonitoring, object{
			"StreamName": name, "ShardLevelMetrics": []string{"IncomingBytes"},
		})
		c.active(name)
		s.on = c.summary(name)
		s.disabled = c.call(disableMonitoring, object{
			"StreamName": name, "ShardLevelMetrics": []string{"ALL"},
		})
		c.active(name)
		s.off = c.summary(name)
		return s
	})
}

func monitoringFacts() []fact {
	return []fact{
		{
			"enable-enhanced-monitoring/members", enableMonitoring,
			"The answer has the stream, the metrics of before and those of after.",
			onPage(enableMonitoring), nothing, func(c *check) {
				a := c.succeeded(enableMonitoring, c.monitored().enabled)
				c.contains(a, "StreamName", "StreamARN", "CurrentShardLevelMetrics",
					"DesiredShardLevelMetrics")
				c.equal("before", a.texts("CurrentShardLevelMetrics"), []string{})
				c.equal("after", a.texts("DesiredShardLevelMetrics"), []string{"IncomingBytes"})
			},
		},
		{
			"enable-enhanced-monitoring/described", describeSummary,
			"Descriptions have the metrics.",
			onPage("EnhancedMetrics"), nothing, func(c *check) {
				c.equal("metrics", c.monitored().on.texts("EnhancedMonitoring.0.ShardLevelMetrics"),
					[]string{"IncomingBytes"})
			},
		},
		{
			"disable-enhanced-monitoring/all", disableMonitoring, "ALL disables every metric.",
			onPage(disableMonitoring), nothing, func(c *check) {
				a := c.succeeded(disableMonitoring, c.monitored().disabled)
				c.equal("before", a.texts("CurrentShardLevelMetrics"), []string{"IncomingBytes"})
				c.equal("after", a.texts("DesiredShardLevelMetrics"), []string{})
				c.equal("EnhancedMonitoring", c.monitored().off.at("EnhancedMonitoring"),
					[]object{{"ShardLevelMetrics": []string{}}})
			},
		},
	}
}
