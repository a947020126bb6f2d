package kinesis

import (
	"sync/atomic"
	"time"
)

// clock is the service's time in milliseconds since 1970. It never steps back, not even when
// the system's clock does and over a restart: a state that has passed does not come back.
type clock struct {
	now  func() time.Time
	last atomic.Int64
}

// read returns the time now.
func (c *clock) read() int64 {
	now := c.now().UnixMilli()
	for {
		last := c.last.Load()
		if now <= last {
			return last
		}
		if c.last.CompareAndSwap(last, now) {
			return now
		}
	}
}

// Now is the service's time: Config.Now's, but that it never steps back.
func (s *Service) Now() time.Time { return time.UnixMilli(s.clock.read()) }

// notBefore makes sure that the clock never reads less than ms.
func (c *clock) notBefore(ms int64) {
	for {
		last := c.last.Load()
		if ms <= last || c.last.CompareAndSwap(last, ms) {
			return
		}
	}
}
