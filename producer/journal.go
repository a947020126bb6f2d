package producer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
)

// Journal stores each unit from before its first attempt until it is settled, so that a later run
// can send the open units again, with the same bytes and the same identity: see Config.Resume. With
// it, records are put exactly once across crashes too.
//
// Except in OrderNone, at most one unit of a lane is open at a time: Settled is called for it
// before Frozen is called for the lane's next unit.
type Journal interface {
	// Frozen stores units before their first attempt. It must return nil only when the units are
	// durable; then the producer sends them. One call has the units of all the API calls that can
	// be made at that time. Frozen is called from several goroutines at a time. It must not change
	// Data or Marks, and must not use them after Settled was called for the unit. ctx ends when
	// Close runs out of time.
	//
	// On an error the producer does not send the calls of these units, counts the calls in
	// Stats.Withheld, and logs the first failure and the recovery. After the usual wait between two
	// attempts it calls Frozen again, with the same units, perhaps in another combination, or with
	// new units for the same records; in that case Settled is called for the old units first. So a
	// failed Frozen may have stored its units or not.
	//
	// An error with a *RefusedUnitsError is about single units; the journal has stored the others.
	Frozen(ctx context.Context, units []FrozenUnit) error
	// Settled records the ends of units, in order, in one call at a time, and before the callbacks
	// of the units' records. It need not be durable: if a settled unit is resumed, a duplicate is
	// put into the stream, and consumers drop it.
	//
	// A record can also be given up while it is in no unit, because it never was in one or because
	// its unit ended with OutcomeRenewed. Marks names such records. A later run must not put
	// them again, since that would put them behind newer records of their lanes.
	//
	// Settled is called for units of a failed Frozen too. It is not called for units or records
	// that Close leaves without a result, nor for those left after the stream has refused the
	// caller (HaltedError). These stay open.
	Settled(units []SettledUnit)
}

// RefusedUnitsError is an error of Journal.Frozen about single units, for example because an
// earlier record of their lane was not delivered. The producer never sends a refused unit. It
// reports the unit's records with ErrRefused and the unit's reason, calls Settled for the unit, and
// continues with the lane's next unit. All other units of the call count as stored.
type RefusedUnitsError struct {
	Units map[int]error // the reasons, by the index in the argument of Frozen
}

func (e *RefusedUnitsError) Error() string {
	first := -1
	for i := range e.Units {
		if first < 0 || i < first {
			first = i
		}
	}
	return fmt.Sprintf("the journal refuses %d units, the first because of: %v", len(e.Units),
		e.Units[first])
}

// FrozenUnit is a unit as every attempt sends it. In OrderShard, where units share Kinesis records,
// it is the unit in a Kinesis record of its own, as OrderKey would send it. It can be resumed in
// either of the two orders, under the same number.
type FrozenUnit struct {
	// Unit is the identity, which is encoded in Data too.
	Unit aggregate.Unit
	// PartitionKey and ExplicitHashKey ("" for none) are the keys of the Kinesis record. They are
	// also the keys of each record in it, except in OrderNone: there they are "a" and the hash key
	// of the first record.
	PartitionKey, ExplicitHashKey string
	// Data is the data of the Kinesis record: an aggregated record.
	Data []byte
	// Marks are the marks of the records in Data, in order: see PutMarked.
	Marks []uint64
	// FrozenAt is when the unit was frozen, by the clock of its run, and before its first attempt.
	// A later run uses it only if the fields below are missing.
	FrozenAt time.Time
	// ServerTime is the last time of the stream that the run had seen before FrozenAt, from the
	// Date of an answer; zero if it had seen none.
	ServerTime time.Time
	// BootID identifies the boot of the machine during which the unit was frozen, and BootTime is
	// the time from that boot to FrozenAt. "" and 0 if the system does not provide them.
	BootID   string
	BootTime time.Duration
}

// SettledUnit is the end of a unit, or of records that are in no unit.
type SettledUnit struct {
	Producer aggregate.ProducerID // with Number, the identity of the unit
	Number   uint64               // 0: for records in no unit
	Outcome  UnitOutcome          // how the unit ended
	// Marks names records that are given up without a unit; Number is then 0 and Outcome is
	// OutcomeUndelivered. It is nil for a unit, whose marks are in its FrozenUnit.
	Marks []uint64
	// Err is the error of the records if Outcome is OutcomeUndelivered: an *UndeliveredError, for a
	// unit that of its last record.
	Err error
}

// UnitOutcome is the way in which a unit ended.
type UnitOutcome uint8

const (
	// OutcomeStored means that the stream has acknowledged the unit, or that a look-up found it.
	OutcomeStored UnitOutcome = iota + 1
	// OutcomeUndelivered means that the records were reported with an error.
	OutcomeUndelivered
	// OutcomeRenewed means that the unit is certainly not in the stream, or is where readers drop
	// it. Its records go into new units with other numbers, or are given up one by one.
	OutcomeRenewed
)

// String returns the name of the outcome.
func (o UnitOutcome) String() string {
	switch o {
	case OutcomeStored:
		return "stored"
	case OutcomeUndelivered:
		return "undelivered"
	case OutcomeRenewed:
		return "again"
	default:
		return fmt.Sprintf("UnitOutcome(%d)", uint8(o))
	}
}

// callSettled passes the ended units to the journal, in order: the mutex is held until Settled has
// returned.
func (p *Producer) callSettled() {
	if p.cfg.Journal == nil {
		return
	}
	p.settling.Lock()
	defer p.settling.Unlock()
	p.mu.Lock()
	ended := p.mu.core.ledger.ended
	p.mu.core.ledger.ended = nil
	p.mu.Unlock()
	if len(ended) > 0 {
		p.cfg.Journal.Settled(ended)
	}
}

// journalAndPut stores the new units of some calls in the journal, and then makes the calls.
func (p *Producer) journalAndPut(batch []*call) {
	p.callSettled() // the ends of units that precede these in their lanes
	var units []FrozenUnit
	for _, made := range batch {
		p.seal(made)
		for _, l := range made.fresh {
			units = append(units, l.frozen(p.clock))
		}
	}
	err := p.cfg.Journal.Frozen(p.life, units)
	var refused *RefusedUnitsError
	if errors.As(err, &refused) {
		err = nil
	}
	p.noteJournal(err)
	switch {
	case err != nil:
		err = fmt.Errorf("the journal has not kept the unit: %w", err)
		for _, made := range batch {
			p.land(made, outcome{all: verdict{fate: withheld, err: err}})
		}
	case refused != nil:
		p.putUnrefused(batch, refused)
	default:
		for _, made := range batch {
			for _, l := range made.fresh {
				l.unit.kept = true
			}
			p.calls.Go(func() { p.put(made) })
		}
	}
}

// noteJournal logs the first failure of the journal and its recovery.
func (p *Producer) noteJournal(err error) {
	p.mu.Lock()
	before := p.mu.journalFailing
	p.mu.journalFailing = err != nil
	p.mu.Unlock()
	switch {
	case err != nil && !before:
		p.cfg.Logger.Warn("the journal does not keep units: nothing new is sent, it is tried again",
			"stream", p.cfg.Stream, "error", err)
	case err == nil && before:
		p.cfg.Logger.Info("the journal keeps units again", "stream", p.cfg.Stream)
	}
}

// putUnrefused makes the calls without a refused unit. The other calls are withheld: their refused
// units end, and the rest is sent in later calls.
func (p *Producer) putUnrefused(batch []*call, some *RefusedUnitsError) {
	i := 0
	for _, made := range batch {
		clean := true
		for _, l := range made.fresh {
			l.unit.refusal = some.Units[i]
			l.unit.kept = l.unit.refusal == nil
			clean = clean && l.unit.kept
			i++
		}
		if clean {
			p.calls.Go(func() { p.put(made) })
			continue
		}
		err := fmt.Errorf("a unit of the call was refused by the journal: %w", some)
		p.land(made, outcome{all: verdict{fate: withheld, err: err}})
	}
}

// frozen returns the lane's unit for the journal.
func (l *lane) frozen(at *clock) FrozenUnit {
	u := &l.unit
	marks := make([]uint64, 0, u.count)
	for e := u.first; e != nil; e = e.next {
		marks = append(marks, e.mark)
	}
	f := FrozenUnit{
		Unit: u.id, PartitionKey: l.key.partition, ExplicitHashKey: l.key.hash, Data: u.data,
		Marks: marks, FrozenAt: u.firstSent, ServerTime: u.since,
	}
	f.BootTime, f.BootID = at.boot(u.firstSent)
	return f
}
