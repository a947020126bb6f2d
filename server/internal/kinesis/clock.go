package kinesis

import (
	"time"

	"github.com/runnel-stream/runnel/server/internal/serverclock"
)

// clock is the service's time in milliseconds since 1970. It never steps back, not even when the
// system's clock does or over a restart: a state that is over does not come back.
type clock struct{ *serverclock.Clock }

// read returns the time now.
func (c clock) read() int64 { return c.Read() }

// notBefore makes sure that the clock never reads less than ms.
func (c clock) notBefore(ms int64) { c.NotBefore(ms) }

// Now is the service's time: Config.Clock's.
func (s *Service) Now() time.Time { return s.streams.clock.Now() }
