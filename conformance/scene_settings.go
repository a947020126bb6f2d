package main

// settingsScene is a stream of one shard for facts about settings. One scene at a time changes
// them.
type settingsScene struct {
	name, arn string
	first     object // the summary before any change
	born      object // its first tags
}

func (c *check) settings() settingsScene {
	return stage(c, "settings", func(c *check) (s settingsScene) {
		s.name = c.stream("settings", object{
			"ShardCount": 1, "MaxRecordSizeInKiB": 2048, "Tags": object{"born": "yes", "empty": ""},
		})
		s.first = c.summary(s.name)
		s.arn = s.first.text("StreamARN")
		s.born = tagsOf(c.call(listTagsForStream, object{"StreamName": s.name}).value)
		return s
	})
}

// alone waits for the right to change the settings stream, and until the stream is ACTIVE.
func (c *check) alone() (release func()) {
	select {
	case c.turn <- struct{}{}:
	case <-c.ctx.Done():
		panic(skipped{"interrupted"})
	}
	release = func() { <-c.turn }
	defer func() {
		if failure := recover(); failure != nil {
			release()
			panic(failure)
		}
	}()
	c.active(c.settings().name)
	return release
}

// tagsOf makes an object of an answer's Tags.
func tagsOf(a object) object {
	tags := object{}
	for _, tag := range a.list("Tags") {
		tags[tag.text("Key")] = tag.text("Value")
	}
	return tags
}
