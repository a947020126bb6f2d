package transport

import (
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
)

const (
	// mostConns is the greatest number of open connections, whatever the machine allows. Each takes
	// some 20 KiB.
	mostConns = 16 << 10
	// idleBefore is how long a connection must have been idle before it makes room for another.
	idleBefore = time.Second
	// crowdedEvery is the time between two lines of the log about too many connections.
	crowdedEvery = time.Minute
)

// connsFor returns the number of connections that leave the process that many files.
func connsFor(files int) int { return max(16, min(mostConns, FileLimit()-files)) }

// makeRoom makes room for one more connection, and reports whether there is any. Files are few, and
// silent clients must take none from those that call, nor from the log. So at the limit the oldest
// connection ends that has sent nothing, or otherwise the one that has been idle for the longest
// time. The lock is held.
func (d *door) makeRoom() (ok bool) {
	if len(d.conns) < d.most {
		return true
	}
	if now := bootclock.Now(); d.crowded.IsZero() || now.Sub(d.crowded) > crowdedEvery {
		d.crowded = now
		d.logger.Warn("all connections that the limit of open files permits are in use: idle ones "+
			"end for new ones", "connections", len(d.conns))
	}
	var silent, idle *earlyConn
	now := bootclock.Now()
	for conn := range d.conns {
		if _, waits := d.waits[conn]; waits {
			if silent == nil || conn.number < silent.number {
				silent = conn
			}
			continue
		}
		last := conn.idleSince()
		if !last.IsZero() && now.Sub(last) > idleBefore &&
			(idle == nil || last.Sub(idle.idleSince()) < 0) {
			idle = conn
		}
	}
	victim := silent
	if victim == nil {
		victim = idle
	}
	if victim == nil {
		return false
	}
	delete(d.waits, victim)
	delete(d.conns, victim)
	_ = victim.Conn.Close() // its owner sees that it is closed
	return true
}

// idleSince returns the time of a connection's last bytes; zero if a call of it is under way.
func (c *earlyConn) idleSince() bootclock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serving > 0 {
		return bootclock.Instant{}
	}
	return c.read
}
