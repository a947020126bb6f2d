package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runnel-stream/runnel"
	"github.com/runnel-stream/runnel/internal/retry"
	"github.com/runnel-stream/runnel/producer"
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
	log    func(message string, args ...any)
	until  int64 // with Once: the highest id at the start; otherwise 0

	low      int64
	high     int64  // the highest id that was read and is durable
	moment   moment // the noted id
	backlog  bool   // the last pass had several windows, or should have had
	limit    int    // rows of the next window
	rowBytes int    // of a row, on average
	swept    time.Time
	stopped  bool // too many keys are held
	failed   int  // failures of the database in a row
	idle     int  // passes in a row without a new row
}

// moment is a highest id, and the id of the next transaction at that time.
type moment struct {
	id   int64
	next uint64 // 0: none was noted
}

// lowest is below every id.
const lowest = int64(-1 << 62)

const (
	sweepEvery  = 10 * time.Second
	sweepRows   = 10_000
	windowRows  = 5000                   // the most rows of a window
	windowFirst = 100                    // rows of the first window, as no size is known
	windowBytes = 4 << 20                // the bytes of a window
	patience    = 250 * time.Millisecond // how long a row waits for room while others have work

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
		if more {
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
		r.log("the database does not answer; trying again", "error", err)
	}
	return databaseBackoff.Wait(ctx, r.failed)
}

func (r *reader) recovered() {
	if r.failed > 0 {
		r.log("the database answers again", "failures", r.failed)
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
	if !r.intake.quiet() {
		return nil
	}
	found, err := r.sweep(ctx, r.until)
	if err == nil && found == 0 && r.intake.quiet() {
		return errDone
	}
	return err
}

// pass reads the rows above the low mark once. It returns how many it has taken.
func (r *reader) pass(ctx context.Context) (taken int, err error) {
	if quiet, err := r.unchanged(ctx); quiet || err != nil {
		return 0, err
	}
	if r.tooManyHeld() {
		return 0, nil
	}
	noted, raise := r.moment, lowest
	for after, first, until := r.low, true, r.until; ; first = false {
		w := window{
			after: after, most: limits{rows: r.limit, bytes: windowBytes, until: until},
			skip: r.intake.skipped(skippedKeys), top: first && r.backlog && until == 0,
		}
		highest := r.high
		r.intake.beginRead()
		p, err := r.store.window(ctx, w)
		if err == nil {
			r.adapt(&p)
			n := 0
			n, err = r.takeAll(ctx, &p)
			taken += n
		}
		r.intake.endRead()
		if err != nil {
			return taken, err
		}
		if first && p.xmin >= noted.next {
			raise, noted = noted.id, moment{highest, p.next}
		}
		if first && w.top {
			until = p.top
		}
		if !p.full {
			break
		}
		after = p.rows[len(p.rows)-1].id
		if until == 0 { // the window is a whole pass, since the next one has another snapshot
			r.backlog = true
			return taken, nil
		}
	}
	r.backlog = false
	r.low, r.moment = max(r.low, raise), noted
	return taken, nil
}

// tooManyHeld reports whether so many keys are held that no new row is taken: one fault holds them
// all, and their number has no other bound.
func (r *reader) tooManyHeld() bool {
	held := r.intake.countHeld()
	if held >= mostHeld && !r.stopped {
		r.log("no further row is taken, since too many keys are held", "keys", held)
	}
	r.stopped = held >= mostHeld
	return r.stopped
}

// mostHeld is the number of held keys from which on no new row is taken.
const mostHeld = 10_000

// unchanged reports whether the database is certainly as it was at the beginning of the last pass.
func (r *reader) unchanged(ctx context.Context) (bool, error) {
	c, ok := r.store.(interface {
		changed(ctx context.Context) (bool, error)
	})
	if !ok {
		return false, nil
	}
	changed, err := c.changed(ctx)
	return !changed && !r.backlog && r.failed == 0, err
}

// adapt sets the size of the next window by the size of the rows of this one.
func (r *reader) adapt(p *page) {
	if len(p.rows) == 0 {
		return
	}
	slices.SortFunc(p.rows, func(a, b row) int { return cmp.Compare(a.id, b.id) })
	r.measure(p.rows)
	r.limit = max(16, min(windowRows, windowBytes/max(1, r.rowBytes), 4*r.limit))
}

// measure sets rowBytes. It grows at once, and falls by a quarter at most.
func (r *reader) measure(rows []row) {
	bytes := 0
	for i := range rows {
		bytes += rows[i].size()
	}
	r.rowBytes = max(bytes/len(rows), r.rowBytes*3/4)
}

// takeAll takes the rows of a window that are new. They are made durable first.
func (r *reader) takeAll(ctx context.Context, p *page) (taken int, err error) {
	for i := range p.rows {
		if !p.durable && r.intake.isNew(&p.rows[i]) {
			if err := r.store.secure(ctx); err != nil {
				return taken, err
			}
			p.durable = true
		}
		v, err := r.place(ctx, &p.rows[i])
		if err == nil && v == take {
			taken++
			err = r.putRow(ctx, &p.rows[i])
		}
		if err != nil {
			return taken, err
		}
	}
	if p.durable && len(p.rows) > 0 {
		r.high = max(r.high, p.rows[len(p.rows)-1].id)
	}
	return taken, nil
}

// place waits until a row has room, or its key was passed over.
func (r *reader) place(ctx context.Context, at *row) (verdict, error) {
	for late := time.Now().Add(patience); ; {
		v := r.intake.admit(at)
		if v != full || r.intake.passOver(at, time.Now().After(late)) {
			return v, nil
		}
		if turned, err := r.turns(ctx); turned > 0 || err != nil {
			if err != nil {
				return leave, err
			}
			continue
		}
		retry.WaitOr(ctx, patience, r.intake.roomy)
		if ctx.Err() != nil {
			return leave, context.Cause(ctx)
		}
	}
}

// putRow puts a row that was taken. One that no stream takes is given to poison.
func (r *reader) putRow(ctx context.Context, at *row) error {
	err := r.put(ctx, at)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNull), errors.Is(err, producer.ErrInvalidPartitionKey),
		errors.Is(err, producer.ErrInvalidHashKey), errors.Is(err, producer.ErrTooLarge),
		errors.Is(err, producer.ErrNestedAggregate):
		r.poison(at, err)
		return nil
	}
	return &putError{err}
}

// turns reads rows of keys that were passed over and have room again, until no further row is
// taken. It returns how many reads have taken rows.
func (r *reader) turns(ctx context.Context) (turned int, err error) {
	for stuck := 0; stuck < groups; {
		places, rows := r.intake.turns(turnKeys)
		if len(places) == 0 {
			break
		}
		most := limits{bytes: windowBytes, until: r.until}
		most.rows = max(1, min(rows, windowRows, windowBytes/max(1, r.rowBytes)))
		moved, err := r.turn(ctx, places, most)
		if err != nil {
			return turned, err
		}
		if stuck++; moved {
			turned++
			stuck = 0
		}
	}
	return turned, nil
}

// turn reads rows of some keys. Whatever happens, each of them gets the end of its turn. moved
// reports whether one of them has gone on.
func (r *reader) turn(
	ctx context.Context, places []place, most limits,
) (moved bool, err error) {
	r.intake.beginRead()
	defer r.intake.endRead()
	p, err := r.store.ofKeys(ctx, places, most)
	if err == nil && len(p.rows) > 0 {
		r.measure(p.rows)
		err = r.store.secure(ctx)
	}
	if err != nil {
		for _, at := range places {
			r.intake.endTurn(at, at.from, false)
		}
		return false, err
	}
	byKey := map[string][]row{}
	for _, found := range p.rows {
		byKey[found.key] = append(byKey[found.key], found)
	}
	last := ""
	if p.full && len(p.rows) > 0 {
		last = p.rows[len(p.rows)-1].key
	}
	reached := true // the read was not cut off before this key
	for _, at := range places {
		rows := byKey[at.key]
		next, done := at.from, false
		if err == nil && reached {
			cut := p.full && at.key == last
			reached = !cut
			next, done, err = r.takeTurn(ctx, at, rows, cut || len(rows) >= most.rows)
		}
		r.intake.endTurn(at, next, done)
		moved = moved || done || next != at.from
	}
	return moved, err
}

// takeTurn takes rows of a key as long as there is room. It returns the lowest row that it has not
// taken, and whether there is none.
func (r *reader) takeTurn(
	ctx context.Context, at place, rows []row, more bool,
) (next int64, done bool, err error) {
	next = at.from
	for i := range rows {
		switch r.intake.admitTurn(&rows[i]) {
		case full:
			return rows[i].id, false, nil
		case take:
			if err := r.putRow(ctx, &rows[i]); err != nil {
				return rows[i].id, false, err
			}
		case leave:
		}
		next = rows[i].id + 1
	}
	return next, !more, nil
}

// sweep looks for rows up to a mark that no pass has shown. It returns how many it has found; they
// are read with their keys.
func (r *reader) sweep(ctx context.Context, mark int64) (found int, err error) {
	began := time.Now()
	for after := lowest; mark > lowest && mark != 0; { // 0 would be no bound
		w := window{
			after: after, skip: r.intake.skipped(skippedKeys),
			most: limits{rows: sweepRows, until: mark},
		}
		r.intake.beginRead()
		rows, err := r.store.ids(ctx, w)
		for i := range rows {
			if r.intake.missed(&rows[i]) {
				found++
			}
		}
		r.intake.endRead()
		if err != nil {
			return found, err
		}
		if len(rows) < sweepRows {
			break
		}
		after = rows[len(rows)-1].id
	}
	// A table of many rows is read seldom enough to cost little.
	r.swept = time.Now().Add(9 * time.Since(began))
	return found, nil
}

// errNull is the reason of a row without a key or without data.
var errNull = errors.New("it is null")

// putInto returns the function that puts a row.
func putInto(p *producer.Producer) func(ctx context.Context, r *row) error {
	return func(ctx context.Context, r *row) error {
		switch {
		case r.noKey:
			return fmt.Errorf("the partition key: %w", errNull)
		case r.noData:
			return fmt.Errorf("the data: %w", errNull)
		}
		record := runnel.Record{PartitionKey: r.key, ExplicitHashKey: r.hash, Data: r.data}
		return p.PutMarked(ctx, record, uint64(r.id), nil)
	}
}
