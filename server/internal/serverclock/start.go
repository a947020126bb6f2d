package serverclock

import "time"

// begin sets the state at a start, from the newest record, and the times in the data directory.
func (c *Clock) begin() {
	last := c.last.Load()
	r, there := record{vouched: last, ceiling: last}.seeded(), false
	if c.file != nil && c.file.newest.number > 0 {
		r, there = c.file.newest, true
	}
	boot, since := c.boot()
	switch {
	case there && boot != "" && r.boot == boot && since >= r.since:
		c.state.Store(&state{
			at: r.since, mono: c.state.Load().mono, wall: r.wall, stamp: r.vouched,
			elapsed: r.elapsed, pace: r.pace, since: since, accepted: r.accepted,
			differs: abs(r.vouched-r.wall) > differs, jump: r.jump, past: r.past,
		})
		c.look()
	case there || last > 0:
		c.afterBoot(&r)
	default: // a new directory
		s := c.glance()
		s.stamp, s.elapsed = s.wall, s.wall
		s.past = s.past.with(s.elapsed, s.stamp, true)
		c.state.Store(&s)
	}
	if c.cfg.Accept {
		c.accept()
	}
	s := c.state.Load()
	c.raise(s.stamp)
	c.reportStart(s)
}

// afterBoot sets the state after another boot than the record's.
func (c *Clock) afterBoot(r *record) {
	s := c.glance()
	last := c.last.Load()
	from := r.vouched
	if r.pace == follows || r.accepted {
		from = r.wall
	}
	gone := s.wall - from
	s.elapsed = r.elapsed + r.ceiling - r.vouched
	switch {
	case gone > credible && !c.cfg.Accept:
		s.pace, s.stamp = refuses, last
	case gone >= 0:
		s.elapsed = r.elapsed + gone
		s.jump, s.accepted = jump{s.elapsed, gone}, r.accepted
		if s.pace, s.stamp = follows, s.wall; s.wall < last {
			s.pace, s.stamp = behind, last
		}
	default:
		s.pace, s.stamp = behind, last
	}
	s.differs = abs(s.stamp-s.wall) > differs
	s.past = r.past.with(s.elapsed, s.stamp, true)
	c.state.Store(&s)
}

// accept takes the system's clock for right.
func (c *Clock) accept() {
	s := *c.state.Load()
	last := c.last.Load()
	if s.pace, s.stamp = follows, s.wall; s.wall < last {
		s.pace, s.stamp = behind, max(last, s.stamp)
	}
	s.accepted = true
	s.differs = abs(s.stamp-s.wall) > differs
	s.past = s.past.with(s.elapsed, s.stamp, false)
	c.state.Store(&s)
}

// reportStart logs a difference at a start.
func (c *Clock) reportStart(s *state) {
	ahead := time.Duration(s.stamp-s.wall) * time.Millisecond
	switch {
	case s.pace == refuses:
		c.cfg.Logger.Warn("the system's clock is more than 30 days ahead of the times in this "+
			"data directory; the server's clock does not follow it, and nothing expires; if the "+
			"system's clock is right, start with --accept-clock", "ahead", -ahead)
	case s.accepted && s.differs:
		c.cfg.Logger.Warn("the system's clock is behind the times in this data directory, and "+
			"accepted; the server's clock, which never steps back, goes on at half speed until "+
			"the system's has caught up", "behind", ahead)
	case ahead > logAfter*time.Millisecond:
		c.cfg.Logger.Warn("the system's clock is behind the times in this data directory; the "+
			"server's clock, which never steps back, goes on at half speed until the system's "+
			"has caught up; nothing expires while they differ by more than a minute, unless the "+
			"next start has --accept-clock", "behind", ahead)
	}
}
