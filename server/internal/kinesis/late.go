package kinesis

import (
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel/internal/bootclock"
	"github.com/runnel-stream/runnel/internal/seam"
	"github.com/runnel-stream/runnel/internal/wire"
	"github.com/runnel-stream/runnel/server/internal/memlimit"
	"github.com/runnel-stream/runnel/server/internal/pause"
	"github.com/runnel-stream/runnel/server/internal/shardlog"
	"github.com/runnel-stream/runnel/server/internal/wal"
)

// A client without an answer to a put sends its records again, for H at most, and readers drop
// duplicates for as long as they remember them. So no put may be stored much later than it was
// sent. A put may have waited for the disk, for memory, for its own body or for a stopped process.
// If it is too old, it is refused at the place where its records would get their sequence numbers,
// after every wait. Its age is known in three ways:
//
//   - by CLOCK_BOOTTIME since the first byte of the request was read;
//   - by the date of its signature, if calls are signed. An unsigned date proves nothing: clients
//     with a wrong clock are served too;
//   - by the pauses of the process: a request that waited in a socket meanwhile may be of any age.

// errLate is wrapped by the refusals of puts that are too old.
var errLate = errors.New("the call is too old to be executed: send it again if it is still wanted")

// dated is an input of an operation that depends on the age of its call.
type dated interface{ cameBy(o *wire.Origin) }

// tooLate returns an error if a put is too old to be stored, or nil.
func (w *writer) tooLate(o *wire.Origin, now moment) error {
	if o == nil {
		return nil
	}
	at, life := bootclock.Now(), seam.H()
	if !o.Began.IsZero() {
		if age := at.Sub(o.Began); age > life {
			return fmt.Errorf("%w: it came %v ago, and %v is the most", errLate,
				age.Round(time.Millisecond), life)
		}
	}
	if !o.Expires.IsZero() && now.Stamp > o.Expires.UnixMilli() {
		return fmt.Errorf("%w: its signature has expired", errLate)
	}
	if w.pauses == nil {
		return nil
	}
	if err := w.pauses.Check(o.Pauses, at); err != nil {
		return fmt.Errorf("%w: %w", errLate, err)
	}
	return nil
}

// NotStored reports whether an error proves that the call changed nothing: the log or the segments
// accept no writes at the moment, the memory is full, or the call came too late. The call may be
// sent again.
func NotStored(err error) bool {
	if errors.As(err, new(*wal.PoisonedError)) { // whatever its cause was
		return false
	}
	for _, refusal := range []error{
		errLate, pause.ErrPaused, memlimit.ErrFull,
		wal.ErrStalled, shardlog.ErrStalled, shardlog.ErrSync,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}
