package producer

import "github.com/runnel-stream/runnel"

// fate is the effect of one call on one of its units.
type fate uint8

const (
	stored    fate = iota // acknowledged
	throttled             // answered: over a limit, not stored
	failed                // answered: not stored, for a reason that may pass
	refused               // answered: not stored, for a reason that will not pass
	unknown               // no answer: it may be stored, now or later
	notSent               // certainly not sent
	suspect               // answered: a record of the call is invalid, and none was stored
	withheld              // the producer decided not to send it
	void                  // stored in another shard than it was packed for; readers drop it
)

// verdict is the result of one unit in one call.
type verdict struct {
	fate     fate
	shard    runnel.ShardID
	sequence runnel.SequenceNumber
	sub      int   // index of the unit's first record in the Kinesis record
	err      error // nil if stored
}

// outcome is the result of a call: one verdict for each Kinesis record, or one for the whole call.
type outcome struct {
	each []verdict // in the order of the call's parcels; nil: all applies
	all  verdict   // its fate is never stored
}

func (o outcome) of(i int) verdict {
	if o.each != nil {
		return o.each[i]
	}
	return o.all
}

// answered reports whether the endpoint has answered the call.
func (o outcome) answered() bool {
	switch o.all.fate {
	case unknown, notSent, withheld:
		return o.each != nil
	case stored, throttled, failed, refused, suspect, void:
	}
	return true
}

// report returns the counts of a call's records by outcome.
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
