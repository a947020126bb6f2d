package producer

import "github.com/runnel-stream/runnel"

// fate is what one call did to one of its units.
type fate uint8

const (
	stored    fate = iota // acknowledged
	throttled             // answered: over a limit, not stored
	failed                // answered: not stored, for a reason that may pass
	refused               // answered: not stored, for a reason that will not pass
	unknown               // no answer: stored, or not, or later
	notSent               // for certain nothing left
	suspect               // answered: one of the call's records is at fault, none was stored
	withheld              // not sent, by the producer's own decision
	void                  // stored in a shard that it was not packed for, where readers drop it
)

// verdict is what one call said of one of its units.
type verdict struct {
	fate     fate
	shard    runnel.ShardID
	sequence runnel.SequenceNumber
	sub      int   // of the unit's first record
	err      error // unless stored
}

// outcome is what became of a call: the units one by one, or all of them alike.
type outcome struct {
	each []verdict // in the order of the call's lanes; nil: see all
	all  verdict   // never stored
}

func (o outcome) of(i int) verdict {
	if o.each != nil {
		return o.each[i]
	}
	return o.all
}

// answered reports whether anybody was there.
func (o outcome) answered() bool {
	return o.each != nil || (o.all.fate != unknown && o.all.fate != notSent)
}

// report counts the outcome of a call.
func (o outcome) report(made *call) CallReport {
	r := CallReport{Units: len(made.parcels), Records: made.records, Bytes: made.bytes}
	if o.each == nil {
		r.Err = o.all.err
	}
	for i := range made.parcels {
		n := made.parcels[i].records()
		switch o.of(i).fate {
		case stored, void:
			r.Stored += n
		case throttled:
			r.Throttled += n
		case failed:
			r.Failed += n
		case refused, suspect:
			r.Refused += n
		case unknown:
			r.Unknown += n
		case notSent, withheld:
			r.NotSent += n
		}
	}
	return r
}
