package kinesis

import (
	"time"

	"github.com/runnel-stream/runnel/server/internal/serverclock"
)

// clock is the service's time: stamps for what clients see and for what records have arrived, and
// elapsed time for every duration. Neither steps back: a state that is over does not come back.
type clock struct{ *serverclock.Clock }

// moment is one reading of it.
type moment = serverclock.Moment

// read returns the moment.
func (c clock) read() moment { return c.Moment() }

// notBefore makes sure that no stamp is less than ms.
func (c clock) notBefore(ms int64) { c.NotBefore(ms) }

// Now is the stamp of the service's moment.
func (s *Service) Now() time.Time { return s.streams.clock.Now() }
