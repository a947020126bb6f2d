package serverclock

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/vfs"
)

const (
	refreshEvery = time.Minute
	// ceilingAhead is how far the ceiling is above the vouched reading. After a power cut the
	// clock begins that far ahead of the last record: little enough for a reboot to make up.
	ceilingAhead = refreshEvery + 30*time.Second
	// slack is how much the system's clock may run ahead of CLOCK_BOOTTIME without a new record.
	// NTP slews both alike, so only a step and the rounding to milliseconds use it.
	slack = 2 * time.Millisecond
	// retryAfter is the pause after a record that could not be written.
	retryAfter = time.Second
)

// Config configures a Clock. The zero value of a field means its default.
type Config struct {
	// Wall is the system's clock. Default seam.Wall.
	Wall func() time.Time
	// FS and Dir are where the file is. Default: there is no file, and a restart may step back.
	FS  vfs.FS
	Dir string
	// Boot names the boot of the machine and returns the time since. Default bootclock's; only
	// tests replace it.
	Boot func() (id string, since time.Duration)
	// Accept says that the system's clock is right at the start: the stamps follow it forward at
	// once, and data expire though the stamps are ahead of it. Default false.
	Accept bool

	Logger *slog.Logger // logs steps of the system's clock; default slog.Default()
}

func (c Config) withDefaults() Config {
	if c.Wall == nil {
		c.Wall = seam.Wall
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Clock reads moments. Its methods are safe for concurrent use.
type Clock struct {
	cfg   Config
	began bootclock.Instant
	born  time.Duration // by boot
	last  atomic.Int64  // the last stamp
	most  atomic.Int64  // the last elapsed time; two readings of the machine's clocks are apart
	state atomic.Pointer[state]
	least int64      // elapsed ms of the data, before Start
	looks sync.Mutex // held while a state replaces another

	file *file         // nil: none
	kick chan struct{} // asks the writer for a record: the stamps are ahead of the limits
	stop chan struct{}
	done sync.WaitGroup

	// Readers hold mu for reading until last is at least the stamp that they return. So a goroutine
	// that holds mu for writing finds every returned stamp in last.
	mu struct {
		sync.RWMutex
		limits  []limit // each holds; none: there is no file, or Start was not called
		started bool
		closed  bool
	}
}

// limit is a record's bound on the stamps.
type limit struct {
	vouched, ceiling int64
	since            time.Time // when the reading was taken
}

// at returns the latest stamp that the record allows.
func (l *limit) at(now time.Time) int64 {
	return min(l.vouched+(now.Sub(l.since)+slack).Milliseconds(), l.ceiling)
}

// New makes a clock without a file.
func New(cfg Config) *Clock {
	c := &Clock{
		cfg: cfg.withDefaults(), began: bootclock.Now(),
		kick: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	_, c.born = c.boot()
	s := c.glance()
	s.stamp, s.elapsed = s.wall, s.wall
	c.state.Store(&s)
	return c
}

// boot names the boot of the machine and returns the time since; without a name, that since New.
func (c *Clock) boot() (id string, since time.Duration) {
	if c.cfg.Boot != nil {
		return c.cfg.Boot()
	}
	now := bootclock.Now()
	if id = bootclock.ID(); id == "" {
		return "", now.Sub(c.began) + seam.Passed()
	}
	return id, now.Boot() + seam.Passed()
}

// Now is Read as a time.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.Read()) }

// Read returns the stamp of the moment.
func (c *Clock) Read() int64 { return c.Moment().Stamp }

// Moment returns the moment.
func (c *Clock) Moment() Moment {
	m, _, _ := c.reading()
	return m
}

// reading returns the moment, with the state and the reading of the system's clock that it is from.
func (c *Clock) reading() (m Moment, s *state, wall int64) {
	wall, now := c.cfg.Wall().UnixMilli(), time.Now()
	s = c.state.Load()
	gone := c.gone(s, now)
	if s.due(wall, gone) {
		s = c.look()
		wall, gone = s.wall, 0
	}
	m = s.moment(wall, gone)
	c.mu.RLock()
	defer c.mu.RUnlock()
	if most := c.bound(m.Stamp, now); most < m.Stamp {
		m.Stamp = most
		select {
		case c.kick <- struct{}{}:
		default:
		}
	}
	m.Stamp = raise(&c.last, m.Stamp)
	m.Elapsed = raise(&c.most, m.Elapsed)
	if !s.accepted && abs(m.Stamp-wall) > tolerance {
		m.hold = true
	}
	return m, s, wall
}

// gone returns the time since a state, in ms. It is cheaper than a look, as it does not see a
// suspension of the machine: the system's clock then seems to have stepped, which takes a look.
func (c *Clock) gone(s *state, now time.Time) int64 {
	if c.cfg.Boot != nil { // a test's, which may not go with time.Now
		_, since := c.cfg.Boot()
		return max((since - s.at).Milliseconds(), 0)
	}
	return max(now.Sub(s.mono).Milliseconds(), 0)
}

// bound returns a stamp, or the latest that the file allows if that is earlier. The caller holds
// mu.
func (c *Clock) bound(stamp int64, now time.Time) int64 {
	for i := range c.mu.limits {
		stamp = min(stamp, c.mu.limits[i].at(now))
	}
	return stamp
}

// NotBefore makes sure that no stamp is less than ms, a time in the data directory. After Start
// only pass it stamps of this clock.
func (c *Clock) NotBefore(ms int64) { raise(&c.last, ms) }

// ElapsedNotBefore makes sure that the elapsed time is never less than ms, one that the data
// directory holds. Call it before Start. A directory that has lost its clock's file needs this.
func (c *Clock) ElapsedNotBefore(ms int64) { c.least = max(c.least, ms) }

// raise makes the last reading at least ms, and returns it.
func raise(reading *atomic.Int64, ms int64) int64 {
	for {
		last := reading.Load()
		if ms <= last {
			return last
		}
		if reading.CompareAndSwap(last, ms) {
			return ms
		}
	}
}

// Difference returns how far the stamps are ahead of the system's clock, and whether that is more
// than a minute. accepted says that data expire nevertheless.
func (c *Clock) Difference() (ahead time.Duration, differs, accepted bool) {
	m, s, wall := c.reading()
	ahead = time.Duration(m.Stamp-wall) * time.Millisecond
	return ahead.Round(time.Second), abs(m.Stamp-wall) > tolerance, s.accepted
}
