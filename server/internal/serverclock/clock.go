// Package serverclock is the one clock of a server. It gives the Date of every answer and the
// arrival of every record, and it never steps back: not when the system's clock does, not over a
// restart, a crash or a reboot. Clients count the age of records by it, so a step back would make
// them begin a search behind the record that they look for.
//
// # Readings
//
// It reads the system's clock while that goes forward. While that is behind, it goes on at half
// speed until the system's has caught up: for two hours after a clock that was an hour ahead is
// corrected. If it did not move for so long, limits would never refill, and a new stream would stay
// CREATING.
//
// # The file
//
// A file of the data directory vouches for the readings: before a reading is given, the file
// durably holds a record from which the next start finds a time that is not earlier.
//
//	vouched   a reading of the clock, and the moment by CLOCK_BOOTTIME at which it was taken
//	ceiling   no reading of the clock is later, whatever time goes by
//
// The record bounds the readings while the process runs: to the vouched reading, the time that has
// gone by since, and slack; and to the ceiling. A new record is made once a minute. When the
// system's clock has stepped forward a record is made at once, and the readings follow it when that
// is durable. If the disk hangs, the clock therefore stops at the ceiling: it is late rather than
// wrong.
//
// After a start in the same boot of the machine, the clock begins at the latest reading that the
// earlier process can have given: the vouched reading, the time that has gone by since, and the
// slack. After a clean end that is its last reading, for the last record's ceiling is no later. In
// another boot it begins at the ceiling, since CLOCK_BOOTTIME has begun anew.
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
	// tellAfter is the least step of the system's clock that is worth a line in the log.
	tellAfter = 5 * time.Second
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

	Logger *slog.Logger // logs steps of the system's clock; default slog.Default()
}

func (c Config) withDefaults() Config {
	if c.Wall == nil {
		c.Wall = seam.Wall
	}
	if c.Boot == nil {
		c.Boot = func() (string, time.Duration) {
			return bootclock.ID(), bootclock.Now().Boot()
		}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Clock reads in milliseconds since 1970. Its methods are safe for concurrent use.
type Clock struct {
	cfg  Config
	last atomic.Int64
	base atomic.Pointer[base]
	slow atomic.Pointer[slow] // nil: the system's clock is not behind

	file *file         // nil: none
	kick chan struct{} // asks the writer for a record: the system's clock is ahead of the limits
	stop chan struct{}
	done sync.WaitGroup

	// Readers hold mu for reading until last is at least the reading that they return. So a
	// goroutine that holds mu for writing finds every returned reading in last.
	mu struct {
		sync.RWMutex
		limits  []limit // each holds; none: there is no file, or Start was not called
		started bool
		closed  bool
	}
}

// base is one moment by the system's clock and by the process's own.
type base struct {
	wall int64
	at   bootclock.Instant
	mono time.Time
}

// slow is the moment at which half speed began, and its reading then.
type slow struct {
	reading int64
	since   time.Time
}

// limit is a record's bound on the readings.
type limit struct {
	vouched, ceiling int64
	since            time.Time // when the reading was taken
}

// at returns the latest reading that the record allows.
func (l *limit) at(now time.Time) int64 {
	return min(l.vouched+(now.Sub(l.since)+slack).Milliseconds(), l.ceiling)
}

// New makes a clock without a file.
func New(cfg Config) *Clock {
	c := &Clock{
		cfg: cfg.withDefaults(), kick: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	c.rebase(c.cfg.Wall().UnixMilli())
	return c
}

func (c *Clock) rebase(wall int64) {
	c.base.Store(&base{wall: wall, at: bootclock.Now(), mono: time.Now()})
}

// Now is Read as a time.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.Read()) }

// Read returns the time now.
func (c *Clock) Read() int64 {
	wall, now := c.cfg.Wall().UnixMilli(), time.Now()
	if b := c.base.Load(); abs(wall-b.wall-now.Sub(b.mono).Milliseconds()) >
		tellAfter.Milliseconds() {
		c.stepped(b, wall)
	}
	wall = c.ahead(wall, now)
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i := range c.mu.limits {
		if most := c.mu.limits[i].at(now); wall > most {
			wall = most
			select {
			case c.kick <- struct{}{}:
			default:
			}
		}
	}
	return c.raise(wall)
}

// ahead returns the system's time, or, while that is behind the last reading, the reading at half
// speed.
func (c *Clock) ahead(wall int64, now time.Time) int64 {
	last, from := c.last.Load(), c.slow.Load()
	switch {
	case wall >= last:
		if from != nil {
			c.slow.CompareAndSwap(from, nil)
		}
		return wall
	case from == nil:
		c.slow.CompareAndSwap(nil, &slow{reading: last, since: now})
		return wall
	}
	return from.reading + now.Sub(from.since).Milliseconds()/2
}

// NotBefore makes sure that the clock never reads less than ms, a time in the data directory. After
// Start only pass it readings of this clock.
func (c *Clock) NotBefore(ms int64) { c.raise(ms) }

// raise makes the last reading at least ms, and returns it.
func (c *Clock) raise(ms int64) int64 {
	for {
		last := c.last.Load()
		if ms <= last {
			return last
		}
		if c.last.CompareAndSwap(last, ms) {
			return ms
		}
	}
}

// stepped logs a step of the system's clock: its advance since b differs from the elapsed time. The
// process's own clock stops while the machine is suspended; that is no step.
func (c *Clock) stepped(b *base, wall int64) {
	next := &base{wall: wall, at: bootclock.Now(), mono: time.Now()}
	if !c.base.CompareAndSwap(b, next) {
		return // another caller logs it
	}
	by := time.Duration(wall-b.wall)*time.Millisecond - next.at.Sub(b.at)
	if by.Abs() < tellAfter {
		return
	}
	if ahead := time.Duration(c.last.Load()-wall) * time.Millisecond; ahead > 0 {
		c.cfg.Logger.Warn("the system's clock has stepped back; the server's clock, which never "+
			"does, goes on at half speed until the system's has caught up",
			"step", by.Round(time.Millisecond), "behind", ahead)
		return
	}
	c.cfg.Logger.Warn("the system's clock has stepped, and the server's clock goes with it",
		"step", by.Round(time.Millisecond))
}

func abs(n int64) int64 { return max(n, -n) }
