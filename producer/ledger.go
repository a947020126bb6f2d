package producer

import (
	"slices"
	"time"
)

// ledger holds the records without a result, and the results that the shell has not collected yet.
type ledger struct {
	stream  string // the stream's name, for errors
	journal bool   // there is a Journal for the ends of units

	taken   uint64 // the number of records so far, and the number of the last one
	ages    ages
	settled []settled // results to report, in order; the shell collects them
	flushes []flush
	ended   []SettledUnit // ends for the Journal, in order; the shell collects them
	counts  counts
}

// settled is a record's result. If flushed is set, it is a mark instead: all results that a flush
// waits for are before it.
type settled struct {
	entry   *entry
	result  Result
	flushed chan<- struct{}
}

// flush waits for the results of all records up to and including number through.
type flush struct {
	through uint64
	done    chan<- struct{}
}

// counts is the part of Stats that only grows.
type counts struct {
	delivered, undelivered, calls, retried, throttled, unknown uint64

	units, lookedUp, found, renewed, void, withheld uint64
}

// admit numbers a record and assigns it to a lane.
func (g *ledger) admit(now time.Time, e *entry, l *lane) {
	g.taken++
	e.number, e.taken, e.lane = g.taken, now, l
	g.ages.push(e)
}

// settle gives a record its result. The caller removes the record from its lane.
func (g *ledger) settle(e *entry, r Result) {
	if r.Err == nil {
		g.counts.delivered++
	} else {
		g.counts.undelivered++
	}
	g.ages.remove(e)
	g.settled = append(g.settled, settled{entry: e, result: r})
	g.markFlushes()
}

// settleAlone gives a record that is in no unit an error. The journal records its end, so that no
// later run puts it behind newer records of its lane.
func (g *ledger) settleAlone(e *entry, cause, reason error) {
	result := g.undelivered(e, e.tried, 0, cause, reason)
	g.settle(e, result)
	if g.journal {
		g.ended = append(g.ended, SettledUnit{
			Outcome: OutcomeUndelivered, Marks: []uint64{e.mark}, Err: result.Err,
		})
	}
}

// settleUndelivered gives the records of a unit their errors, and returns that of the last one.
func (g *ledger) settleUndelivered(u *unit, reason error) (err error) {
	for e := u.first; e != nil; {
		next := e.next
		result := g.undelivered(e, e.tried+u.attempts, u.unknown, u.cause, reason)
		g.settle(e, result)
		err, e = result.Err, next
	}
	return err
}

func (g *ledger) undelivered(e *entry, attempts, unknown int, cause, reason error) Result {
	return Result{Attempts: attempts, Unknown: unknown, Err: &UndeliveredError{
		Stream: g.stream, PartitionKey: e.record.PartitionKey, Reason: reason,
		Attempts: attempts, Unknown: unknown, Cause: cause,
	}}
}

// end adds the end of a unit for the journal, if the journal has the unit.
func (g *ledger) end(u *unit, how UnitOutcome, err error) {
	if u.journalled {
		g.ended = append(g.ended, SettledUnit{
			Producer: u.id.Producer, Number: u.id.Number, Outcome: how, Err: err,
		})
	}
}

// flush asks for a mark behind the results of all records taken so far. No call lingers while there
// is such a request.
func (g *ledger) flush(done chan<- struct{}) {
	g.flushes = append(g.flushes, flush{through: g.taken, done: done})
	g.markFlushes()
}

// forget withdraws the request of a flush.
func (g *ledger) forget(done chan<- struct{}) {
	g.flushes = slices.DeleteFunc(g.flushes, func(f flush) bool { return f.done == done })
}

// markFlushes adds the marks of finished flushes. The flushes are in the order of the records for
// which they wait.
func (g *ledger) markFlushes() {
	for len(g.flushes) > 0 {
		if oldest := g.ages.oldest; oldest != nil && oldest.number <= g.flushes[0].through {
			return
		}
		g.settled = append(g.settled, settled{flushed: g.flushes[0].done})
		g.flushes = slices.Delete(g.flushes, 0, 1)
	}
}

// unsettled returns how many records have no result, and how many of these may be in the stream
// because an attempt had no answer. It is for the error of a Close that ran out of time.
func (g *ledger) unsettled() (records, unknown int) {
	for e := g.ages.oldest; e != nil; e = e.newer {
		records++
		u := &e.lane.unit
		sent := u.unknown > 0 && u.first.number <= e.number && e.number <= u.last.number
		if sent || e.resumed && e.tried == 0 {
			unknown++
		}
	}
	return records, unknown
}

// age returns the time since the Put of the oldest record without a result.
func (g *ledger) age(now time.Time) time.Duration {
	if g.ages.oldest == nil {
		return 0
	}
	return now.Sub(g.ages.oldest.taken)
}

// ages is a list of the records without a result, in the order of their Puts.
type ages struct {
	oldest, newest *entry
}

func (a *ages) push(e *entry) {
	e.older = a.newest
	if a.newest == nil {
		a.oldest = e
	} else {
		a.newest.newer = e
	}
	a.newest = e
}

func (a *ages) remove(e *entry) {
	if e.older == nil {
		a.oldest = e.newer
	} else {
		e.older.newer = e.newer
	}
	if e.newer == nil {
		a.newest = e.older
	} else {
		e.newer.older = e.older
	}
	e.older, e.newer = nil, nil
}
