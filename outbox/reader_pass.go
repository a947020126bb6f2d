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

// pass reads the rows above the low mark once. It returns how many it has taken.
func (r *reader) pass(ctx context.Context) (taken int, err error) {
	if quiet, err := r.unchanged(ctx); quiet || err != nil {
		return 0, err
	}
	noted, raise := r.moment, lowest
	for after, first, until := r.low, true, r.until; ; first = false {
		if r.tooManyHeld() {
			r.backlog = false
			return taken, nil
		}
		w := window{
			after: after, most: limits{rows: r.limit, bytes: windowBytes, until: until},
			skip: r.intake.skipped(skippedKeys), top: first && r.backlog && until == 0,
		}
		if r.rowBytes > largeRow {
			w.known = r.intake.fewKnown()
		}
		highest := r.high
		r.intake.beginRead()
		p, err := r.store.window(ctx, w)
		if err == nil && r.begun(p.generation) {
			r.intake.endRead()
			return taken, nil
		}
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

// begun reports whether the table has begun a new generation. Then nothing is known about its ids,
// and the next pass begins with the lowest.
func (r *reader) begun(generation int64) bool {
	same := !r.began || generation == r.generation
	r.began, r.generation = true, generation
	if same {
		return false
	}
	r.log("the table was rewritten or its ids are drawn again; it is read from the beginning")
	r.low, r.high, r.moment, r.backlog = lowest, lowest, moment{id: lowest}, true
	r.intake.restart()
	return true
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
	slices.SortFunc(p.rows, byID)
	r.measure(p.rows)
	r.limit = max(1, min(windowRows, windowBytes/max(1, r.rowBytes), 4*r.limit))
}

// byID compares rows by their ids.
func byID(a, b row) int { return cmp.Compare(a.id, b.id) }

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

// errNull is the reason of a row without a key or without data.
var errNull = errors.New("is missing: it is null, or no text; give the row one")

// putInto returns the function that puts a row.
func putInto(p *producer.Producer) func(ctx context.Context, r *row) error {
	return func(ctx context.Context, r *row) error {
		switch {
		case r.noKey:
			return fmt.Errorf("the partition key %w", errNull)
		case r.noData:
			return fmt.Errorf("the data %w", errNull)
		}
		record := runnel.Record{PartitionKey: r.key, ExplicitHashKey: r.hash, Data: r.data}
		return p.PutMarked(ctx, record, uint64(r.id), nil)
	}
}
