package serverclock

import "time"

// begin sets the state at a start, from the newest record, and the times in the data directory.
func (c *Clock) begin() {
	last := c.last.Load()
	r, there := record{vouched: last, ceiling: last}, false
	if c.file != nil && c.file.newest.number > 0 {
		r, there = c.file.newest, true
	}
	boot, since := c.boot()
	same := there && boot != "" && r.boot == boot && since >= r.since
	if r.past == nil {
		wall := c.cfg.Wall().UnixMilli() // and when the record was made, if that is known
		if same {
			wall -= (since - r.since).Milliseconds()
		}
		r = r.seeded(wall)
	}
	switch {
	case same:
		c.state.Store(&state{
			at: r.since, mono: c.state.Load().mono, wall: r.wall, stamp: r.vouched,
			elapsed: r.elapsed, pace: r.pace, since: since, accepted: r.accepted,
			differs: abs(r.vouched-r.wall) > tolerance, jump: r.jump, past: r.past,
		})
		if was, next, step := c.replace(); next.pace == follows {
			c.report(was, next, step)
		}
	case there || last > 0:
		c.afterBoot(&r)
	default: // a new directory
		s := c.glance()
		s.stamp, s.elapsed = s.wall, s.wall
		s.past = s.past.with(s.elapsed, s.stamp, true)
		c.state.Store(&s)
	}
	own := c.state.Load()
	if c.cfg.Accept {
		c.accept()
	}
	c.skip()
	s := c.state.Load()
	raise(&c.last, s.stamp)
	c.most.Store(s.elapsed)
	c.reportStart(s, s.stamp-own.stamp)
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
	s.differs = abs(s.stamp-s.wall) > tolerance
	s.past = r.past.with(s.elapsed, s.stamp, true)
	c.state.Store(&s)
}

// skip goes on from the elapsed time of the data, if that is later. Nothing becomes older by it.
func (c *Clock) skip() {
	s := *c.state.Load()
	by := c.least - s.elapsed
	if by <= 0 {
		return
	}
	s.elapsed += by
	s.jump.end += by
	s.past = s.past.later(s.elapsed, by).with(s.elapsed, s.stamp, false)
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
	s.differs = abs(s.stamp-s.wall) > tolerance
	s.past = s.past.with(s.elapsed, s.stamp, false)
	c.state.Store(&s)
}

// reportStart logs a difference at a start. accepted is the step, in ms, that --accept-clock made.
func (c *Clock) reportStart(s *state, accepted int64) {
	ahead := time.Duration(s.stamp-s.wall) * time.Millisecond
	switch {
	case s.pace == refuses:
		c.cfg.Logger.Warn("the system's clock is more than 30 days ahead of the times in this "+
			"data directory; the server's clock does not follow it, and nothing expires; if the "+
			"system's clock is right, start with --accept-clock", "ahead", -ahead)
	case s.pace == waits:
		c.cfg.Logger.Warn("the system's clock is far ahead of the times in this data directory; "+
			"the server's clock follows it if that lasts ten minutes, and nothing expires "+
			"meanwhile, unless the next start has --accept-clock", "ahead", -ahead)
	case s.pace == follows && accepted >= logAfter:
		c.cfg.Logger.Warn("the server's clock goes with the system's, since --accept-clock says "+
			"that it is right", "step", time.Duration(accepted)*time.Millisecond)
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
