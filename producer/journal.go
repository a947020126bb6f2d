package producer

import (
	"context"
	"fmt"
	"time"

	"github.com/runnel-stream/runnel/aggregate"
)

// Journal keeps units from before they are first sent until they are settled, so that a later
// run can send what was open again, as the same bytes under the same identity: see
// Config.Resume. With it, records are put exactly once over crashes too.
//
// But for OrderNone, of the units of a lane one is open at most, and of a unit's end Settled is
// told before Frozen is told of the lane's next.
type Journal interface {
	// Frozen is called before units are first sent, once for all the calls that can be made
	// at a time; they are sent after it has returned nil, when the units must be durable. It is
	// called from several goroutines at a time. It must not keep Data or Marks after Settled
	// was told of the unit, and must not change them. ctx ends when Close runs out of time.
	//
	// When it fails, nothing of its calls is sent: Stats.Withheld counts it, the Logger
	// hears of the first failure and of the end of it, and after the wait between two attempts
	// Frozen is told of the same units again, beside others, or of their records in other
	// units, which Settled is told of first. So units of which it has failed may be kept or not.
	Frozen(ctx context.Context, units []FrozenUnit) error
	// Settled is told what became of units, in order, one call at a time, and before the
	// callbacks of the units' records. It need not be durable: a unit that is settled and is
	// resumed nevertheless leaves a double in the stream, which the consumers drop.
	//
	// Records that are given up while they are in no unit, since they never were or their unit has
	// ended as OutcomeRenewed, are named by their Marks. A run that put them again would put them
	// behind newer ones of their lanes.
	//
	// It is told of units of which Frozen has failed too. It is not told of what Close left without
	// a result, nor of what is left when the stream has refused the caller (HaltedError): that
	// stays open.
	Settled(units []SettledUnit)
}

// FrozenUnit is a unit as it is sent, by every attempt. In OrderShard, where units share Kinesis
// records, it is the unit in a Kinesis record of its own, as it may be sent by OrderKey too: that
// is resumed in either order, under its number, alone or in company.
type FrozenUnit struct {
	// Unit is the identity. It is in Data too.
	Unit aggregate.Unit
	// PartitionKey and ExplicitHashKey ("" for none) are those of the Kinesis record, and but
	// for OrderNone of each record in it. In OrderNone they are "a" and the first record's hash
	// key.
	PartitionKey, ExplicitHashKey string
	// Data is the Kinesis record's: an aggregated record.
	Data []byte
	// Marks are the caller's names for the records in Data, in order: see PutMarked.
	Marks []uint64
	// FrozenAt is when the unit was frozen, by the clock of its run. It is not sent before. A
	// later run goes by it only where the fields below are missing.
	FrozenAt time.Time
	// ServerTime is the stream's time that the run had last seen then, the Date of an answer;
	// zero if it had seen none.
	ServerTime time.Time
	// BootID names the boot of the machine that the unit was frozen in, and BootTime is how long
	// after that boot it was. "" and 0 where the system does not say.
	BootID   string
	BootTime time.Duration
}

// SettledUnit is the end of a unit, or of records that are in none.
type SettledUnit struct {
	Producer aggregate.ProducerID // with Number, the identity of the unit
	Number   uint64               // 0: of no unit
	Outcome  UnitOutcome          // how it ended
	// Marks names the records that are given up without a unit, with Number 0 and the Outcome
	// OutcomeUndelivered. It is nil for a unit, whose marks Frozen has told.
	Marks []uint64
	// Err is the result of the unit's records if the Outcome is OutcomeUndelivered: an
	// *UndeliveredError.
	Err error
}

// UnitOutcome is how a unit ended.
type UnitOutcome uint8

const (
	// OutcomeStored tells that the stream has acknowledged it, or that it was found there.
	OutcomeStored UnitOutcome = iota + 1
	// OutcomeUndelivered tells that the records were reported with an error.
	OutcomeUndelivered
	// OutcomeRenewed tells that it is not in the stream and will not be, or where readers drop it.
	// Its records are frozen anew under other numbers, or given up one by one.
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

// tell tells the journal of what is settled, in order: who tells holds the turn until it has.
func (p *Producer) tell() {
	if p.cfg.Journal == nil {
		return
	}
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	ended := p.mu.core.ledger.ended
	p.mu.core.ledger.ended = nil
	p.mu.Unlock()
	if len(ended) > 0 {
		p.cfg.Journal.Settled(ended)
	}
}

// keep journals the units that are new in some calls, and then makes the calls.
func (p *Producer) keep(batch []*call) {
	p.tell() // the ends of the units that these come after
	var units []FrozenUnit
	for _, made := range batch {
		p.seal(made)
		for _, l := range made.fresh {
			units = append(units, l.frozen(p.clock))
		}
	}
	err := p.cfg.Journal.Frozen(p.life, units)
	p.mu.Lock()
	before := p.mu.unkept
	p.mu.unkept = err != nil
	p.mu.Unlock()
	switch {
	case err != nil && !before:
		p.cfg.Logger.Warn("the journal does not keep units: nothing new is sent, it is tried again",
			"stream", p.cfg.Stream, "error", err)
	case err == nil && before:
		p.cfg.Logger.Info("the journal keeps units again", "stream", p.cfg.Stream)
	}
	for _, made := range batch {
		if err != nil {
			err := fmt.Errorf("the journal has not kept the unit: %w", err)
			p.land(made, outcome{all: verdict{fate: withheld, err: err}})
			continue
		}
		for _, l := range made.fresh {
			l.unit.kept = true
		}
		p.calls.Go(func() { p.put(made) })
	}
}

// frozen is the lane's unit for the journal.
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
