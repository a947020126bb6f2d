package serverclock

import "time"

const (
	// lookAfter is the difference between the advances of the system's clock and of elapsed time,
	// in ms, that takes a look.
	lookAfter = 100
	// lookEvery is the time between two looks while the stamps do not follow, in ms.
	lookEvery = 1000
	// lostAfter is the time between two looks after which a step may have gone and come again, in
	// ms. The writer looks once a minute.
	lostAfter = 150_000
	// tolerance is the greatest difference between stamps and system's clock that does not matter,
	// in ms.
	tolerance = 60_000
	// stepsAhead is how far ahead the system's clock is followed at once, in ms: summer time, and a
	// clock that was set to the neighbouring zone. A second more is for the rounding.
	stepsAhead = 3_600_000 + 1000
	// lasts is how long a greater step has to last.
	lasts = 10 * time.Minute
	// credible is the most that the system's clock may have advanced between two boots, in ms.
	credible = 30 * 24 * 3_600_000
	// young is the uptime of a machine below which nothing expires, in ms.
	young = 3_600_000
	// logAfter is the least step of the system's clock that is worth a line in the log, in ms.
	logAfter = 5000
)

// pace says how the stamps go on: see the package comment.
type pace uint8

const (
	follows pace = iota
	behind
	waits
	refuses
	paces // the number of them
)

// state is a moment from which the next ones are counted, with the findings on the system's clock.
type state struct {
	at   time.Duration // since the boot
	mono time.Time     // the same moment
	up   int64         // the machine's uptime, ms

	wall, stamp, elapsed int64

	pace     pace
	since    time.Duration // waits: when the step was first seen, since the boot
	accepted bool          // Config.Accept holds for the system's clock as it is
	differs  bool          // stamp and wall do: for the log
	jump     jump
	past     *past
}

// jump is the time that elapsed time added at a boot, by the system's clock alone.
type jump struct {
	end int64 // elapsed ms after it
	by  int64 // ms of it that nothing has disproved
}

// glance returns a state with its times by the machine.
func (c *Clock) glance() state {
	now := time.Now()
	_, since := c.boot()
	return state{
		at: since, mono: now, wall: c.cfg.Wall().UnixMilli(),
		up: max(since, since-c.born).Milliseconds(),
	}
}

// due reports whether the state has to be replaced for a reading.
func (s *state) due(wall, gone int64) bool {
	return abs(wall-s.wall-gone) > lookAfter || (s.pace != follows && gone >= lookEvery)
}

// moment returns the moment some ms after the state.
func (s *state) moment(wall, gone int64) Moment {
	m := Moment{
		Stamp: s.own(gone), Elapsed: s.elapsed + gone, past: s.past, hold: s.up+gone < young,
	}
	if s.pace == follows || s.pace == behind && wall > m.Stamp {
		m.Stamp = wall
	}
	return m
}

// own returns the stamp some ms after the state if the system's clock was left alone.
func (s *state) own(gone int64) int64 {
	switch s.pace {
	case follows:
		return s.wall + gone
	case behind:
		return s.stamp + gone/2
	default:
		return s.stamp + gone
	}
}

// look replaces the state by that of the moment, and logs the changes.
func (c *Clock) look() *state {
	s, next, step := c.replace()
	c.report(s, next, step)
	return next
}

// replace replaces the state. It also returns the one before, and by how many ms the system's clock
// has stepped.
func (c *Clock) replace() (s, replaced *state, step int64) {
	c.looks.Lock()
	defer c.looks.Unlock()
	s = c.state.Load()
	next := c.glance()
	gone := max((next.at - s.at).Milliseconds(), 0)
	if rest := next.at - s.at - time.Duration(gone)*time.Millisecond; rest > 0 {
		next.at, next.mono = next.at-rest, next.mono.Add(-rest) // many looks would lose much
	}
	step = next.wall - s.wall - gone
	next.elapsed = s.elapsed + gone
	next.accepted = s.accepted && abs(step) <= tolerance
	next.past, next.jump = s.past, s.jump
	if back := -step; back > tolerance {
		next.past, next.jump = s.jump.overrated(s.past, back)
	}
	c.setPace(&next, s, gone, step)
	next.differs = abs(next.stamp-next.wall) > tolerance
	c.mu.RLock()
	stamp := c.bound(next.stamp, next.mono)
	c.mu.RUnlock()
	next.past = next.past.with(next.elapsed, stamp, false)
	c.state.Store(&next)
	return s, &next, step
}

// setPace decides how the stamps go on from a state to the next one.
func (c *Clock) setPace(next, s *state, gone, step int64) {
	last := c.last.Load()
	own := max(s.own(gone), last)
	switch ahead := next.wall - own; {
	case ahead > stepsAhead && s.pace == refuses && abs(step) <= tolerance:
		next.pace, next.stamp = refuses, own
	case ahead > stepsAhead:
		next.since = next.at
		if s.pace == waits && abs(step) <= tolerance && gone <= lostAfter {
			next.since = s.since
		}
		if next.pace, next.stamp = waits, own; next.at-next.since >= lasts {
			next.pace, next.stamp = follows, next.wall
		}
	case next.wall >= last:
		next.pace, next.stamp = follows, next.wall
	case s.pace == behind:
		next.pace, next.stamp = behind, own
	default:
		next.pace, next.stamp = behind, last
	}
}

// overrated returns a past and a jump that are corrected after the system's clock was set back by
// some ms.
func (j jump) overrated(p *past, back int64) (*past, jump) {
	by := min(back, j.by)
	if by <= 0 {
		return p, j
	}
	return p.later(j.end, by), jump{j.end, j.by - by}
}

// report logs a step, and the begin and the end of a difference.
func (c *Clock) report(s, next *state, step int64) {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	switch ahead := ms(next.stamp - next.wall); {
	case next.pace == behind && (s.pace != behind || abs(step) >= logAfter) && ahead > ms(logAfter):
		c.cfg.Logger.Warn("the system's clock has stepped back; the server's clock, which never "+
			"does, goes on at half speed until the system's has caught up; nothing expires "+
			"while they differ by more than a minute, unless the next start has --accept-clock",
			"step", ms(step), "behind", ahead)
	case next.pace == waits && (s.pace != waits || abs(step) >= logAfter):
		c.cfg.Logger.Warn("the system's clock has stepped far ahead; the server's clock follows "+
			"it if that lasts ten minutes, and nothing expires meanwhile",
			"step", ms(step), "ahead", -ahead)
	case next.pace == follows && s.pace >= waits:
		c.cfg.Logger.Warn("the server's clock follows the system's again",
			"step", ms(next.wall-s.stamp))
	case next.pace == follows && abs(step) >= logAfter:
		c.cfg.Logger.Warn("the system's clock has stepped, and the server's clock goes with it",
			"step", ms(step))
	case s.differs && !next.differs:
		c.cfg.Logger.Info("the server's clock and the system's agree again")
	}
}

func abs(n int64) int64 { return max(n, -n) }
