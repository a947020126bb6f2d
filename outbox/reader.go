package outbox

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/runnel-stream/runnel/internal/retry"
)

// reader reads the table and puts its rows. It makes passes: each reads the rows above the low mark
// by their ids, in windows, and takes those that are new.
//
// # Order
//
// Rows of one key that are written one after another are read in that order:
//
//   - A window is one statement, and so one snapshot of the database: if it has a row, it has the
//     rows of the key that were committed before.
//   - A pass of several windows ends at the highest id of its first one. A row that was committed
//     after a window had been read is followed, in its key, only by rows with higher ids than that.
//
// # The low mark
//
// Deleted rows stay in the index as long as any snapshot in the database is open, and a pass from 0
// reads them all. So a pass begins at the low mark: no row below it can appear any more. At the
// beginning of a pass, the highest id that was read so far is noted together with the id of the
// next transaction. When all transactions below that have ended, so has every one that has drawn a
// row's id up to the noted one, if it had a transaction id before. A pass that begins then shows
// all rows up to the noted id that there will ever be. At its end the mark is raised to it.
//
// Writers that draw the row's id first can commit below the mark. For them all ids up to the mark
// are read every sweepEvery, without data.
type reader struct {
	store  store
	intake *intake
	put    func(ctx context.Context, r *row) error
	poison func(r *row, reason error)
	stuck  func() int // the rows that could not be deleted
	log    func(message string, args ...any)
	until  int64 // with Once: the highest id at the start; otherwise 0

	low        int64
	high       int64  // the highest id that was read and is durable
	moment     moment // the noted id
	began      bool   // a window was read
	generation int64  // the table's
	backlog    bool   // the last pass had several windows, or should have had
	limit      int    // rows of the next window
	rowBytes   int    // of a row, on average
	swept      time.Time
	stopped    bool // too many keys are held
	failed     int  // failures of the database in a row
	idle       int  // passes in a row without a new row
}

// moment is a highest id, and the id of the next transaction at that time.
type moment struct {
	id   int64
	next uint64 // 0: none was noted
}

// lowest is below every id.
const lowest = int64(math.MinInt64)

const (
	sweepEvery  = 10 * time.Second
	sweepRows   = 10_000
	windowRows  = 5000                   // the most rows of a window
	windowFirst = 100                    // rows of the first window, as no size is known
	windowBytes = 4 << 20                // the bytes of a window
	patience    = 250 * time.Millisecond // how long a row waits for room while others have work

	// largeRow is the size of a row from which on known rows are not read again.
	largeRow = 64 << 10

	turnKeys    = 100  // the most keys of a read by key
	skippedKeys = 1000 // the most keys that a window leaves out
)

// The waits between two passes without new rows. At the longest there are 16 reads a second: with
// the heartbeats they are less than 20.
const (
	pollMin = time.Millisecond
	pollMax = 60 * time.Millisecond
)

// errDone ends a reader with Once.
var errDone = errors.New("everything that was in the table is in the stream")

// run reads until ctx ends, the producer halts, or with Once everything is done.
func (r *reader) run(ctx context.Context) error {
	r.limit, r.swept = windowFirst, time.Now()
	r.low, r.high, r.moment.id = lowest, lowest, lowest
	for {
		more, err := r.round(ctx)
		switch {
		case err == nil:
			r.recovered()
		case r.fatal(ctx, err):
			return err
		default:
			if err := r.wait(ctx, err); err != nil {
				return err
			}
			continue
		}
		if more && ctx.Err() == nil {
			continue
		}
		if err := retry.Wait(ctx, min(pollMax, pollMin<<min(r.idle, 10))); err != nil {
			return err
		}
	}
}

// fatal reports whether reading ends with an error.
func (*reader) fatal(ctx context.Context, err error) bool {
	var put *putError
	return ctx.Err() != nil || errors.As(err, &put) || errors.Is(err, errDone)
}

// putError wraps an error of the producer that is not about the row.
type putError struct{ error }

func (e *putError) Unwrap() error { return e.error }

// wait waits after a failure of the database.
func (r *reader) wait(ctx context.Context, err error) error {
	if r.failed++; r.failed == 1 {
		r.log("a read of the database has failed; trying again", "error", err)
	}
	return databaseBackoff.Wait(ctx, r.failed)
}

func (r *reader) recovered() {
	if r.failed > 0 {
		r.log("the database is read again", "failures", r.failed)
		r.failed = 0
	}
}

// round makes a pass, and everything else that is due. more reports whether the next one is to
// follow at once.
func (r *reader) round(ctx context.Context) (more bool, err error) {
	taken, err := r.pass(ctx)
	if err != nil {
		return false, err
	}
	turned, err := r.turns(ctx)
	if err != nil {
		return false, err
	}
	if time.Since(r.swept) >= sweepEvery {
		if _, err := r.sweep(ctx, r.low); err != nil {
			return false, err
		}
	}
	if taken+turned == 0 && r.until > 0 {
		if err := r.finish(ctx); err != nil {
			return false, err
		}
	}
	if r.idle++; taken+turned > 0 {
		r.idle = 0
	}
	return r.backlog || turned > 0, nil
}

// finish returns errDone if every row up to until is in the stream or held.
func (r *reader) finish(ctx context.Context) error {
	if !r.intake.quiet(r.stuck()) {
		return nil
	}
	found, err := r.sweep(ctx, r.until)
	if err == nil && found == 0 && r.intake.quiet(r.stuck()) {
		return errDone
	}
	return err
}
